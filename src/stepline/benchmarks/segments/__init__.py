"""Step recognition in given segments: of your own data sets, and the base of benchmarks with such an annotation."""

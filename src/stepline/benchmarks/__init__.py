"""Benchmarks: all that only one paper needs, in a package each."""

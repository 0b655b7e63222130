"""What to cite: the references of data sets, backbones, recognisers, methods, metrics and tools."""

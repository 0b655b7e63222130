"""References and licences of data sets, backbones, recognisers, methods, metrics and tools."""

"""Presets: how the papers sample and preprocess clips for each family of networks. Nothing here imports torch."""

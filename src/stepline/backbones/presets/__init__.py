"""Presets: how the papers sampled and prepared clips for each family of networks. Nothing here imports torch."""

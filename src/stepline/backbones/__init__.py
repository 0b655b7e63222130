"""Backbones: one module per family of networks. The specs of the published networks are in ``presets``."""

"""Backbones: one module per family of networks. The specs of the published networks are in ``presets``."""

CHECKED = ("s3d", "timesformer", "internvideo", "eva_clip", "egovlp", "videoclip")
"""The families with a parity check against their reference implementation."""

"""Backbones: one file per family; each holds the frozen specs of its encoders."""

CHECKED = ("s3d", "timesformer", "internvideo", "eva_clip", "egovlp", "videoclip")
"""The families whose networks ``parity`` compares with the reference."""

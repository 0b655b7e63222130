"""Backbones: one file per family; each holds the frozen specs of its encoders."""

"""Trainable modules and their training."""

CHECKED = ("pdvc",)
"""The heads that ``parity`` compares with their released networks."""

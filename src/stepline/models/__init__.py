"""Trainable modules and their training."""

CHECKED = ("pdvc", "hirest_joint")
"""The heads that ``parity`` compares with their released networks."""

"""Trainable modules and their training."""

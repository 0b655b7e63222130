"""Trainable modules and their training."""

WEIGHTS = {"hirest-joint": "load_released", "clip4caption": "load_clip4caption"}
"""The weights of heads, and the function of ``hirest_joint_release`` that loads them."""

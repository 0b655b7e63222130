"""Stepline: from raw procedural video to the tables of five papers, reproducibly."""

__version__ = "0.1.0"

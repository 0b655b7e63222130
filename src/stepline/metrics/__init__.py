"""Metrics: pure functions on arrays, each importable alone."""

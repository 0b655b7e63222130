"""Spacewalk-18: step recognition and intra-video retrieval."""

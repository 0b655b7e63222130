"""Figures and the page of a study of recordings and windows."""

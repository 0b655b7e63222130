"""A text tower as a user's file, ``tower.py``, for features that are made up."""

from collections.abc import Callable
from inspect import getsource
from textwrap import indent
from typing import Any

DIMENSION = 32
"""Of features and texts."""
BACKBONES = {"tower": {"path": "./tower.py"}}
"""The configuration's key ``backbones``."""
FILE = """
from __future__ import annotations

from stepline.spec import ClipSpec, TextSpec

DIMENSION = {dimension}
WHAT = {{"revision": 1, "architecture": "file", "weights": (), "licence": "Apache-2.0", "dimension": DIMENSION}}
PIXELS = {{"steps": (("exact", 8, 8, "pil_bilinear"),), "mean": (0, 0, 0), "std": (1, 1, 1)}}
SPEC = ClipSpec(name="tower", label="1fps", fps=1, num_frames=1, output="colours", **PIXELS, **WHAT)
TEXT = TextSpec(name="tower-text", label="bytes", max_tokens=512, output="drawn", normalise=True, **WHAT)


class Encoder:
    spec = TEXT

    def tokens(self, text):
        return list(text.encode())

    def encode(self, tokens):
        from functools import cache

        import numpy as np

{vector}
        return vector(bytes(tokens).decode()).astype(np.float32)


def load(spec, files):
    raise NotImplementedError


def load_text(spec, files):
    return Encoder()
"""


def tower(vector: Callable[[str], Any]) -> str:
    """Return the file. vector: a function of that name, of numpy alone; it returns the vector of a text."""
    return FILE.format(dimension=DIMENSION, vector=indent(getsource(vector), " " * 8))

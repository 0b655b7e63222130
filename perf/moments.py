"""Synthetic features of videos for `perf/index.py`: a custom network that is never run, and a text tower.

A row is a unit vector: a direction that all rows share (as in CLIP), a topic, its video, its scene (8 s on average), a
walk in the scene and noise. Topics, videos and scenes are in 128 directions with decreasing variance. Rows of different
topics have a cosine of about 0.45, of a scene 0.95. A text is a unit vector around another shared direction, with parts
of a topic and of a scene, so texts are far from all rows.
"""

from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from stepline.spec import ClipSpec, TextSpec

Rows = NDArray[np.float32]
SHARED = {"revision": 1, "architecture": "file", "weights": (), "licence": "Apache-2.0", "dimension": 512}
SPEC = ClipSpec(
    name="moments",
    label="1fps",
    fps=1,
    num_frames=1,
    steps=(("exact", 224, 224, "bilinear"),),
    mean=(0, 0, 0),
    std=(1, 1, 1),
    output="none",
    **SHARED,
)
TEXT = TextSpec(name="moments-text", label="text_embed", max_tokens=77, output="text_embed", normalise=True, **SHARED)

FIXED = np.random.default_rng(0)
BASIS = FIXED.standard_normal((128, 512), np.float32) * np.arange(1, 129, dtype=np.float32)[:, None] ** -0.5


def unit(rows: Rows) -> Rows:
    """Return rows of length 1."""
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def drawn(rng: np.random.Generator, n: int) -> Rows:
    """Return n unit vectors in the directions of the content."""
    return unit(rng.standard_normal((n, 128), np.float32) @ BASIS)


TOPICS = drawn(FIXED, 500)
PICTURES, WORDS = unit(FIXED.standard_normal((2, 512), np.float32))
NOISE = unit(FIXED.standard_normal((1 << 14, 512), np.float32))


def video(number: int, length: int) -> NDArray[np.float16]:
    """Return the rows of a video."""
    from scipy.signal import lfilter

    rng = np.random.default_rng([1, number])
    scene = np.cumsum(rng.random(length) < 1 / 8)
    walk = lfilter([0.436], [1, -0.9], rng.standard_normal((length, 16), np.float32), axis=0).astype(np.float32)
    first = rng.integers(len(NOISE) - length)
    rows = 0.15 * NOISE[first : first + length] + 0.4 * drawn(rng, scene[-1] + 1)[scene] + 0.1 * walk @ unit(BASIS[:16])
    rows += 0.7 * PICTURES + 0.5 * TOPICS[rng.integers(500)] + 0.35 * drawn(rng, 1)
    return unit(rows).astype(np.float16)


class Tower:
    """A tower whose vectors depend on the text only by its hash."""

    spec = TEXT

    def tokens(self, text: str) -> list[int]:
        """Return a number for each word."""
        return [crc32(word.encode()) for word in text.split()]

    def encode(self, tokens: list[int]) -> Rows:
        """Return the vector of a text."""
        rng = np.random.default_rng([2, *tokens])
        content = 0.25 * TOPICS[rng.integers(500)] + 0.25 * drawn(rng, 1)[0]
        return unit(0.8 * WORDS + content + 0.2 * unit(rng.standard_normal(512, np.float32)))


def load(_spec: ClipSpec, _files: Mapping[str, Path]) -> object:
    """Return a network that cannot be run."""
    return object()


def load_text(_spec: TextSpec, _files: Mapping[str, Path]) -> Tower:
    """Return the tower."""
    return Tower()

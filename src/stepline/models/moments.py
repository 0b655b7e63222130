"""Moments and steps without training: the heuristics of HiREST (Zala et al., CVPR 2023, Sec. 4.1) and TextTiling.

Rows of a video are in temporal order. A moment is given by its first and last row, inclusive.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

CONTEXT = 3
"""The number of sentences compared on each side of a boundary."""
APART_S = 5.0
"""The minimum length of a step from ``topic_boundaries``, in seconds."""


def around(similarity: NDArray[np.floating], reach: int = 8) -> tuple[int, int]:
    """Return the range of ``reach`` rows before and after the row most similar to the query (Sec. 4.1).

    similarity: (T,), of query and rows, T at least 1. The first row wins a tie.
    """
    peak = int(np.argmax(similarity))
    return max(peak - reach, 0), min(peak + reach, len(similarity) - 1)


def above(similarity: NDArray[np.floating], drop: float) -> tuple[int, int]:
    """Return the run of rows around the best one whose similarity is at least the best minus ``drop``.

    similarity: (T,), T at least 1. The first row wins a tie. Sec. 4.1 does not require consecutive rows; a moment does.
    """
    scores = np.asarray(similarity, np.float64)
    peak = int(np.argmax(scores))
    below = np.flatnonzero(scores < scores[peak] - drop)
    place = int(np.searchsorted(below, peak))
    first = int(below[place - 1]) + 1 if place else 0
    return first, int(below[place]) - 1 if place < len(below) else len(scores) - 1


def uniform_rows(length: int, n: int = 32) -> Rows:
    """Return ``n`` of the rows 0..``length``-1, evenly spaced and rounded down (HiREST's ``hirest_dataset.py``).

    If ``length`` is below ``n``, rows repeat.
    """
    return np.linspace(0, length - 1, n).astype(np.int64)


def subset_rows(n: int, of: int = 32) -> Rows:
    """Return the indices of ``n`` out of ``of`` stored frames: evenly spaced, rounded down; the first if ``n`` is 1.

    This is the sampling of HiREST's retrieval baselines, where "1 frame" is frame 0.
    """
    return np.linspace(0, of - 1, n).astype(np.int64)


def pooled(rows: NDArray[np.floating], n: int, similarity: str) -> Floats:
    """Return the (D,) vector of a video: the mean of ``n`` of its (T, D) rows, see ``subset_rows``.

    similarity: ``cosine`` scales the mean to unit length, as in HiREST's retrieval baselines; ``dot product`` does not.
    The rows are averaged as stored. A zero mean stays zero.
    """
    mean: Floats = rows[subset_rows(n, len(rows))].mean(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(mean)) if similarity == "cosine" else 1.0
    return mean / length if length else mean


def topic_boundaries(
    vectors: NDArray[np.floating], times_s: NDArray[np.floating], start_s: float, end_s: float, count: int
) -> list[float]:
    """Return the boundaries between up to ``count`` steps of a moment, from its speech: ascending times in seconds.

    vectors: (N, D), of all sentences of the video. times_s: (N,), their starts, ascending. A boundary is the start of a
    sentence in [``start_s``, ``end_s``) that starts later than the previous sentence. Boundaries are chosen greedily by
    the lowest cosine between the mean vectors of the up to three sentences before and after it, the earlier one in a
    tie. They are at least 5 s from each other and from both ends, and there are at most ``count`` - 1. This is
    TextTiling (Hearst, 1997) with sentence vectors and without depth scores. Cosines are rounded to six decimals, so
    that rounding errors do not break ties; the cosine with a zero mean is 0.
    """
    inside = (times_s >= start_s) & (times_s < end_s)
    starts, sums = times_s[inside], np.cumsum(vectors[inside], axis=0, dtype=np.float64)
    sums = np.vstack([np.zeros((1, vectors.shape[1])), sums])
    places = np.arange(1, len(starts))
    before = sums[places] - sums[np.maximum(places - CONTEXT, 0)]
    after = sums[np.minimum(places + CONTEXT, len(starts))] - sums[places]
    lengths = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    cosines = np.divide(np.sum(before * after, axis=1), lengths, out=np.zeros(len(places)), where=lengths > 0)
    chosen: list[float] = []
    for place in np.argsort(cosines.round(6), kind="stable"):
        at = float(starts[place + 1])
        if (
            len(chosen) < count - 1
            and at > starts[place]
            and all(abs(at - other) >= APART_S for other in (start_s, end_s, *chosen))
        ):
            chosen.append(at)
    return sorted(chosen)

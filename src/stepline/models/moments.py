"""Moments and steps without training: the heuristics of HiREST (Zala et al., CVPR 2023, Sec. 4.1) and TextTiling.

Rows of a video are in time order; a moment is its first and its last row, both included.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

CONTEXT = 3
"""Sentences on each side of a boundary that are compared."""
APART_S = 5.0
"""Least length of a step that ``topic_boundaries`` gives, in seconds."""


def around(similarity: NDArray[np.floating], reach: int = 8) -> tuple[int, int]:
    """Return the rows up to ``reach`` before and after the one most like the query, the first of equals (Sec. 4.1).

    similarity: (T,) of query and rows, T at least 1.
    """
    peak = int(np.argmax(similarity))
    return max(peak - reach, 0), min(peak + reach, len(similarity) - 1)


def above(similarity: NDArray[np.floating], drop: float) -> tuple[int, int]:
    """Return the run of rows around the best one whose similarity is at least the best minus ``drop``.

    similarity: (T,), T at least 1. Of equally good rows the first counts. Sec. 4.1 does not say that the rows follow
    each other; a moment has to.
    """
    scores = np.asarray(similarity, np.float64)
    peak = int(np.argmax(scores))
    below = np.flatnonzero(scores < scores[peak] - drop)
    place = int(np.searchsorted(below, peak))
    first = int(below[place - 1]) + 1 if place else 0
    return first, int(below[place]) - 1 if place < len(below) else len(scores) - 1


def uniform_rows(length: int, n: int = 32) -> Rows:
    """Return ``n`` of the rows 0..``length``-1, evenly spaced and rounded down (HiREST's ``hirest_dataset.py``).

    Where ``length`` is below ``n``, rows repeat.
    """
    return np.linspace(0, length - 1, n).astype(np.int64)


def subset_rows(n: int, of: int = 32) -> Rows:
    """Return which ``n`` of ``of`` stored frames are used: evenly spaced, rounded down; of one, the first.

    The source is the sampling of HiREST's retrieval baselines, whose "1 frame" is frame 0.
    """
    return np.linspace(0, of - 1, n).astype(np.int64)


def pooled(rows: NDArray[np.floating], n: int, similarity: str) -> Floats:
    """Return the (D,) vector of a video: the mean of ``n`` of its (T, D) rows, see ``subset_rows``.

    similarity: ``cosine`` scales the mean to length 1, as HiREST's retrieval baselines do; ``dot product`` does not.
    The rows are averaged as they are stored. A mean of zeros stays as it is.
    """
    mean: Floats = rows[subset_rows(n, len(rows))].mean(axis=0, dtype=np.float64)
    length = float(np.linalg.norm(mean)) if similarity == "cosine" else 1.0
    return mean / length if length else mean


def topic_boundaries(
    vectors: NDArray[np.floating], times_s: NDArray[np.floating], start_s: float, end_s: float, count: int
) -> list[float]:
    """Return where up to ``count`` steps of a moment meet, by what is said in it: ascending times, seconds.

    vectors: (N, D) of all sentences of the video. times_s: (N,) their starts, ascending. A boundary is the start of a
    sentence in [``start_s``, ``end_s``), later than that of the one before. Boundaries are chosen one after the other
    where the mean vectors of the up to three sentences before and from it have the least cosine, of equal ones the
    earlier, at least 5 s from each other and from both ends, until there are ``count`` - 1 or no more. This is
    TextTiling (Hearst, 1997) with sentence vectors and without depth scores. Cosines are rounded to six decimals, so
    that ties do not hang on how sums are rounded; that with a mean of zeros is 0.
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

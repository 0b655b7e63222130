"""Video retrieval for a query, scored as in HiREST's released evaluation (``evaluate.py``)."""

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike


def rank(videos: Sequence[str], scores: ArrayLike) -> list[str]:
    """Return the N videos by descending score; videos with equal scores by descending id.

    scores: (N,). Ids compare by code point. Raises ValueError if the lengths differ or a score is NaN.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (len(videos),) or np.isnan(values).any():
        raise ValueError(f"{len(videos)} videos need as many scores, none of them NaN; they have {values.shape}")
    return [video for _, video in sorted(zip(values.tolist(), videos, strict=True), reverse=True)]


def first_rank(ranked: Sequence[str], answers: Collection[str]) -> float:
    """Return the rank, from 1, of the first video in ``ranked`` that is an answer; inf if there is none."""
    return next((float(place) for place, video in enumerate(ranked, start=1) if video in answers), math.inf)


def recall_at(k: int, first_ranks: ArrayLike) -> float:
    """Return the fraction of queries with an answer among the first k videos, in [0, 1].

    first_ranks: the result of ``first_rank`` for each query. One answer is enough, however many a query has. Raises
    ValueError if there is no query.
    """
    ranks = np.asarray(first_ranks, dtype=np.float64)
    if not ranks.size:
        raise ValueError("recall of no queries is undefined")
    return float((ranks <= k).mean())

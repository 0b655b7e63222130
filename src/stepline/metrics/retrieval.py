"""Retrieval of videos for a query, as HiREST's released evaluation has it (``evaluate.py``)."""

import math
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import ArrayLike


def rank(videos: Sequence[str], scores: ArrayLike) -> list[str]:
    """Return the N videos from the best to the worst: the highest score first, of equal scores the last id.

    scores: (N,). Ids compare by code point. Raises ValueError where the two differ in length, and for a score of NaN.
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (len(videos),) or np.isnan(values).any():
        raise ValueError(f"{len(videos)} videos need as many scores, none of them NaN; they have {values.shape}")
    return [video for _, video in sorted(zip(values.tolist(), videos, strict=True), reverse=True)]


def first_rank(ranked: Sequence[str], answers: Collection[str]) -> float:
    """Return the place, from 1, of the first of ``ranked`` that is an answer; inf where none is."""
    return next((float(place) for place, video in enumerate(ranked, start=1) if video in answers), math.inf)


def recall_at(k: int, first_ranks: ArrayLike) -> float:
    """Return the share of queries with an answer among the first k videos, in [0, 1].

    first_ranks: of each query, as ``first_rank`` gives it. However many answers a query has, one is enough. Raises
    ValueError where there is no query.
    """
    ranks = np.asarray(first_ranks, dtype=np.float64)
    if not ranks.size:
        raise ValueError("recall of no queries is undefined")
    return float((ranks <= k).mean())

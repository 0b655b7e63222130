"""Predictions of a ranking, and of a pair of a query and a video."""

from typing import Any

from stepline.benchmarks.hirest.kinds import Found
from stepline.datasets.hirest import Pair

RANKED = 50
"""How many of a ranking are kept: the largest k of R@k."""


def ranking(query: str, ranked: list[str], pool: int, seed: int = 0) -> Found:
    """Return the ranking of a query. ranked: ids of videos, the best first, of a pool of so many."""
    return Found(seed=seed, split="pool", video="", query=query, ranked=tuple(ranked[:RANKED]), pool=pool)


def found(pair: Pair, *, seed: int = 0, **said: Any) -> Found:
    """Return what is said of a pair: ``moment``, ``segments`` or ``sentences``, see `Found`."""
    return Found(seed=seed, split=pair.split, video=pair.video, query=pair.query, **said)

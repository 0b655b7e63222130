"""Predictions of rankings, and for pairs of a query and a video."""

from collections.abc import Collection, Iterator, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import UnavailableError
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.datasets.hirest import Pair
from stepline.metrics.retrieval import rank
from stepline.models.moments import uniform_rows
from stepline.needs import Need

RANKED = 50
"""The number of videos kept from a ranking: the largest k of R@k."""
FRAMES = 32
"""The number of evenly spaced frames per video (Sec. 4)."""
DECIMALS = 9
"""The decimals of compared similarities, so that ties do not depend on rounding errors."""


def sampled(duration: float, there: float = inf) -> NDArray[np.int64]:
    """Return the (32,) indices of the evenly spaced rows that represent a video.

    duration: of the video, in rows. there: the number of available rows; later rows are not used. As in the released
    loader, the indices are ``int(linspace(0, n - 1, 32)[i])``, with n the rounded duration.
    """
    return uniform_rows(max(1, int(min(round(duration), there))), FRAMES)


def asked(inputs: HirestInputs, pool: Collection[str]) -> list[str]:
    """Return the queries with an answer in the pool; raise UnavailableError if there are none."""
    there = {*pool}
    found = [query for query, answers in inputs.queries.items() if there & {*answers}]
    if not found:
        raise UnavailableError(Need("videos", "hirest"))
    return found


def rankings(queries: Sequence[str], pool: Sequence[str], scores: NDArray[np.floating]) -> Iterator[Found]:
    """Yield the ranking of each query, by `stepline.metrics.retrieval.rank`. scores: (queries, pool)."""
    for query, row in zip(queries, scores.round(DECIMALS), strict=True):
        yield ranking(query, rank(pool, row), len(pool))


def ranking(query: str, ranked: list[str], pool: int, seed: int = 0) -> Found:
    """Return the ranking of a query. ranked: video ids, best first. pool: the number of videos in the pool."""
    return Found(seed=seed, split="pool", video="", query=query, ranked=tuple(ranked[:RANKED]), pool=pool)


def stepped(inputs: HirestInputs) -> list[tuple[Pair, tuple[float, float]]]:
    """Return the pairs with annotated steps, each with its moment."""
    return [(pair, pair.bounds_s) for pair in inputs.evaluated if pair.steps and pair.bounds_s]


def found(pair: Pair, *, seed: int = 0, **said: Any) -> Found:
    """Return the prediction for a pair: ``moment``, ``segments`` or ``sentences``, see `Found`."""
    return Found(seed=seed, split=pair.split, video=pair.video, query=pair.query, **said)

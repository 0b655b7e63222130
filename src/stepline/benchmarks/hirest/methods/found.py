"""Predictions of a ranking, and of a pair of a query and a video."""

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
"""How many of a ranking are kept: the largest k of R@k."""
FRAMES = 32
"""Of a video, evenly spaced (Sec. 4)."""
DECIMALS = 9
"""Of similarities that are compared, so that ties do not hang on how sums are rounded."""


def sampled(duration: float, there: float = inf) -> NDArray[np.int64]:
    """Return the (32,) rows, a unit of the duration each, that stand for a video; of those that are there.

    As the released loader has it: ``int(linspace(0, n - 1, 32)[i])``, where n is the rounded duration.
    """
    return uniform_rows(max(1, int(min(round(duration), there))), FRAMES)


def asked(inputs: HirestInputs, pool: Collection[str]) -> list[str]:
    """Return the queries of which a video is in the pool; raise UnavailableError where there is none."""
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
    """Return the ranking of a query. ranked: ids of videos, the best first, of a pool of so many."""
    return Found(seed=seed, split="pool", video="", query=query, ranked=tuple(ranked[:RANKED]), pool=pool)


def stepped(inputs: HirestInputs) -> list[tuple[Pair, tuple[float, float]]]:
    """Return the pairs whose steps are annotated, each with its moment."""
    return [(pair, pair.bounds_s) for pair in inputs.evaluated if pair.steps and pair.bounds_s]


def found(pair: Pair, *, seed: int = 0, **said: Any) -> Found:
    """Return what is said of a pair: ``moment``, ``segments`` or ``sentences``, see `Found`."""
    return Found(seed=seed, split=pair.split, video=pair.video, query=pair.query, **said)

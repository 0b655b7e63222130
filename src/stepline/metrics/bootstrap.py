"""Confidence intervals by bootstrap over videos."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


def bootstrap_interval(
    per_video: Sequence[float], *, samples: int, seed: int, weights: Sequence[float] | None = None
) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean over videos, by resampling videos with replacement.

    per_video: one value per video. Windows of one video are far from independent, so videos are the resampling unit. A
    single video has no interval: (nan, nan). weights: one positive weight per video, such as its number of windows;
    the mean of a resample is then the weighted mean. Raises ValueError for any other weights.
    """
    values = np.asarray(per_video, dtype=np.float64)
    shares = _shares(values, weights)
    if values.size < 2:
        return float("nan"), float("nan")
    return _interval(_means(values, shares, samples, seed))


class Difference(NamedTuple):
    """The mean difference over videos, its 95 % interval, and the fraction of resamples in which it is above 0.

    low, high and share_above are nan for a single video.
    """

    mean: float
    low: float
    high: float
    share_above: float


def paired_interval(
    first: Sequence[float], second: Sequence[float], *, samples: int, seed: int, weights: Sequence[float] | None = None
) -> Difference:
    """Return the difference of ``first`` and ``second`` by a paired bootstrap over videos.

    first, second: one value per video, for the same videos in the same order. weights: as in `bootstrap_interval`.
    Raises ValueError if their lengths differ.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} videos cannot be paired")
    values = np.asarray(first, dtype=np.float64) - np.asarray(second, dtype=np.float64)
    shares = _shares(values, weights)
    mean = float(values.mean() if shares is None else np.average(values, weights=shares))
    if values.size < 2:
        return Difference(mean, *[float("nan")] * 3)
    means = _means(values, shares, samples, seed)
    return Difference(mean, *_interval(means), float((means > 0).mean()))


def _shares(values: NDArray[np.float64], weights: Sequence[float] | None) -> NDArray[np.float64] | None:
    if weights is None:
        return None
    shares = np.asarray(weights, dtype=np.float64)
    if shares.shape != values.shape or not (shares > 0).all():
        raise ValueError(f"weights must be above 0 and one for each of {values.size} videos")
    return shares


def _means(values: NDArray[np.float64], shares: NDArray[np.float64] | None, samples: int, seed: int) -> Any:
    draws = np.random.default_rng(seed).integers(values.size, size=(samples, values.size))
    if shares is None:
        return values[draws].mean(axis=1)
    return (values * shares)[draws].mean(axis=1) / shares[draws].mean(axis=1)


def _interval(means: Any) -> tuple[float, float]:
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)

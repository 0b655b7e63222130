"""Confidence intervals by bootstrap over videos."""

from collections.abc import Sequence

import numpy as np


def bootstrap_interval(per_video: Sequence[float], *, samples: int, seed: int) -> tuple[float, float]:
    """Return the 95 % percentile interval of the mean over videos, which are drawn with replacement.

    per_video: one value per video. Windows of one video are far from independent, so videos are the unit. One video
    gives no interval: (nan, nan).
    """
    values = np.asarray(per_video, dtype=np.float64)
    if values.size < 2:
        return float("nan"), float("nan")
    draws = np.random.default_rng(seed).integers(values.size, size=(samples, values.size))
    low, high = np.quantile(values[draws].mean(axis=1), [0.025, 0.975])
    return float(low), float(high)

"""Confidence intervals by bootstrap over videos."""

from collections.abc import Sequence

import numpy as np


def bootstrap_interval(
    per_video: Sequence[float], *, samples: int, seed: int, confidence: float = 0.95
) -> tuple[float, float]:
    """Return the percentile interval of the mean over videos, which are drawn with replacement.

    per_video: one value per video. Windows of one video are far from independent, so videos are the unit. One video
    gives no interval: (nan, nan).
    """
    values = np.asarray(per_video, dtype=np.float64)
    if values.size < 2:
        return float("nan"), float("nan")
    draws = np.random.default_rng(seed).integers(values.size, size=(samples, values.size))
    tail = (1 - confidence) / 2
    low, high = np.quantile(values[draws].mean(axis=1), [tail, 1 - tail])
    return float(low), float(high)

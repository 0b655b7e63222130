"""Moment retrieval and moment segmentation, scored as in HiREST's released evaluation (``evaluate.py``).

Zala et al. (2023), Hierarchical Video-Moment Retrieval and Step-Captioning. Intervals are start and end in seconds. An
interval that ends before its start is scored too and overlaps nothing. Mean IoUs, which the release does not report,
are the mean of `moment_iou` over moments and `stepline.metrics.segments.mean_iou` over the steps of a moment.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

THRESHOLDS = (0.5, 0.7)
"""The IoUs at which HiREST reports recall and precision."""


class SegmentationScores(NamedTuple):
    """Recall and precision of a video at each of K thresholds, (K,) each, in [0, 1]."""

    recall: NDArray[np.float64]
    precision: NDArray[np.float64]


class MatchedScores(NamedTuple):
    """Recall, precision and F1 of a video at each of K thresholds, (K,) each, in [0, 1]."""

    recall: NDArray[np.float64]
    precision: NDArray[np.float64]
    f1: NDArray[np.float64]


def moment_iou(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Return the intersection over union of intervals, (...), in [0, 1).

    first, second: (..., 2), broadcast over all axes but the last. As in the release, 1e-8 s is added to the union, so
    an overlap of exactly one half scores below 0.5, and an interval of length 0 has IoU 0 even with itself. The release
    defines the union as the smaller of the hull and the sum of lengths; for overlapping intervals that is the hull.
    """
    one, other = _intervals(first), _intervals(second)
    shared = np.minimum(one[..., 1], other[..., 1]) - np.maximum(one[..., 0], other[..., 0])
    hull = np.maximum(one[..., 1], other[..., 1]) - np.minimum(one[..., 0], other[..., 0])
    found: NDArray[np.float64] = np.divide(shared, hull + 1e-8, out=np.zeros(np.shape(shared)), where=shared > 0)
    return found


def moment_hits(true: ArrayLike, predicted: ArrayLike, thresholds: Sequence[float] = THRESHOLDS) -> NDArray[np.bool_]:
    """Return whether the IoU of each of N predicted moments reaches each of K thresholds, (N, K).

    true, predicted: (N, 2). The mean over N is the released R@1, computed over all pairs whose video has a moment.
    """
    return moment_iou(true, predicted)[..., None] >= np.array(thresholds)


def preprocess_moment_bounds(bounds: ArrayLike, moment: tuple[float, float]) -> NDArray[np.float64]:
    """Return predicted steps as the release's option ``preprocess_moment_bounds`` changes them before scoring, (m, 2).

    bounds: (n, 2). moment: the true moment, which every method receives as input. Predictions that touch the border of
    the moment or lie outside it are dropped. The rest are visited from the last to the first as predicted; a prediction
    less than a second away from a kept one is dropped. The kept predictions are sorted by start, and segments fill the
    gaps between, before and after them. If none is kept, the result is the whole moment.

    True steps share their bounds. This option therefore returns them unchanged if their number is odd. If it is even,
    the first two become one; steps next to one shorter than a second are also merged. Scored as predictions, the true
    steps of HiREST's test videos have a recall of 0.899 at 0.5 and 0.845 at 0.7 with this option, and 0.997 without it.

    The release orders predictions by an unstable sort with equal keys: with more than 16 left after the first test, its
    result depends on the build of NumPy. The result here is that of NumPy 2.4 with AVX2 or AVX-512, which keeps the
    order.
    """
    start_s, end_s = moment
    kept: list[list[float]] = []
    for start, end in reversed(_intervals(bounds).tolist()):
        inside = start > start_s and end < end_s
        if inside and all(min(end, other[1]) - max(start, other[0]) + 1 <= 0 for other in kept):
            kept.append([start, end])
    kept.sort(key=lambda interval: interval[0])
    edges = np.array([start_s, *(edge for interval in kept for edge in interval), end_s], dtype=np.float64)
    return np.column_stack((edges[:-1], edges[1:]))


def covered(
    true: ArrayLike, predicted: ArrayLike, thresholds: Sequence[float] = THRESHOLDS
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Return which of n true and m predicted steps are covered at each of K thresholds, (n, K) and (m, K).

    A step is covered if its IoU with any step of the other side is above the threshold (not equal to it). The matching
    is not one to one.
    """
    above = _above(true, predicted, thresholds)
    return np.any(above, axis=1), np.any(above, axis=0)


def segmentation_scores(
    true: ArrayLike, predicted: ArrayLike, thresholds: Sequence[float] = THRESHOLDS
) -> SegmentationScores:
    """Return the fraction of a video's true and predicted steps that are `covered`, for each of K thresholds.

    The released scores are the means over videos. Both fractions are 0 if there is no predicted step; the release then
    divides 0 by the number of predictions of the previous video, and fails if there is no previous video. Raises
    ValueError if there is no true step.
    """
    first, second = covered(true, predicted, thresholds)
    _check(len(first))
    return SegmentationScores(first.mean(axis=0), second.sum(axis=0) / max(1, len(second)))


def matched_scores(true: ArrayLike, predicted: ArrayLike, thresholds: Sequence[float] = THRESHOLDS) -> MatchedScores:
    """Return the scores of a video under the one-to-one matching with the most pairs whose IoU is above a threshold.

    The release has no such score. Each true step and each predicted step is in at most one pair, so neither a long nor
    a repeated prediction counts for several steps. Raises ValueError if there is no true step.
    """
    from scipy.optimize import linear_sum_assignment

    above = _above(true, predicted, thresholds)
    n, m, _ = above.shape
    _check(n)
    pairs = np.array([each[linear_sum_assignment(each, maximize=True)].sum() for each in np.moveaxis(above, -1, 0)])
    return MatchedScores(pairs / n, pairs / max(1, m), 2 * pairs / (n + m))


def _above(true: ArrayLike, predicted: ArrayLike, thresholds: Sequence[float]) -> NDArray[np.bool_]:
    """Return whether the IoU of each pair of n true and m predicted steps is above each of K thresholds, (n, m, K)."""
    return moment_iou(_intervals(true)[:, None], _intervals(predicted))[..., None] > np.array(thresholds)


def _intervals(values: ArrayLike) -> NDArray[np.float64]:
    """Return an array (..., 2) of finite numbers; for an empty list, (0, 2)."""
    found = np.asarray(values, dtype=np.float64)
    if found.shape == (0,):
        return np.empty((0, 2))
    if found.shape[-1:] != (2,) or not np.isfinite(found).all():
        raise ValueError(f"intervals must be finite starts and ends in seconds, not an array of shape {found.shape}")
    return found


def _check(n_true: int) -> None:
    if not n_true:
        raise ValueError("there is no true step to find")

"""Moments and their segmentation in steps, as HiREST's released evaluation scores them (``evaluate.py``).

Zala et al. (2023), Hierarchical Video-Moment Retrieval and Step-Captioning. Intervals are start and end in seconds;
those that end before their start are scored too, and overlap nothing. Elsewhere, mean IoUs are `moment_iou`'s mean over
moments, and `stepline.metrics.segments.mean_iou` over the steps of one.
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

    first, second: (..., 2), broadcast over all axes but the last. As released, 1e-8 s are added to the union, so an
    exact half is below 0.5, and an interval of length 0 has IoU 0 even with itself. The released union, the smaller one
    of the hull and the sum of lengths, is the hull wherever two intervals overlap.
    """
    one, other = _intervals(first), _intervals(second)
    shared = np.minimum(one[..., 1], other[..., 1]) - np.maximum(one[..., 0], other[..., 0])
    hull = np.maximum(one[..., 1], other[..., 1]) - np.minimum(one[..., 0], other[..., 0])
    found: NDArray[np.float64] = np.divide(shared, hull + 1e-8, out=np.zeros(np.shape(shared)), where=shared > 0)
    return found


def moment_hits(true: ArrayLike, predicted: ArrayLike, thresholds: Sequence[float] = THRESHOLDS) -> NDArray[np.bool_]:
    """Return whether each of N predicted moments has an IoU of at least each of K thresholds, (N, K).

    true, predicted: (N, 2). The mean over N is the released R@1, over all pairs whose video has a moment.
    """
    return moment_iou(true, predicted)[..., None] >= np.array(thresholds)


def preprocess_moment_bounds(bounds: ArrayLike, moment: tuple[float, float]) -> NDArray[np.float64]:
    """Return predicted steps as the released option of that name changes them before scoring, (m, 2).

    bounds: (n, 2). moment: the true one, an input of every method. Predictions that touch the moment's border, or lie
    outside, are dropped. Of those left, from the last to the first as predicted, one is dropped if it is less than a
    second away from one that is kept. What is kept is sorted by its start, and the gaps between, before and after are
    filled with segments; where nothing is kept, that is the whole moment.

    So true steps, which share their bounds, come back where their number is odd; where it is even, the first two become
    one, and so do steps near one of less than a second. As predictions, the true steps of HiREST's test videos have a
    recall of 0.899 at 0.5 and of 0.845 at 0.7 with this option, and of 0.997 without.

    The release takes predictions in the order of an unstable sort of equal keys: with more than 16 left after the
    first test, its result depends on the build of numpy. This is the result of numpy 2.4 with AVX2 or AVX-512, which
    keeps the order.
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
    """Return which of n true and of m predicted steps have an IoU above each of K thresholds, (n, K) and (m, K).

    That is with any step of the other side, not one to one; an IoU that equals the threshold is none above it.
    """
    above = _above(true, predicted, thresholds)
    return np.any(above, axis=1), np.any(above, axis=0)


def segmentation_scores(
    true: ArrayLike, predicted: ArrayLike, thresholds: Sequence[float] = THRESHOLDS
) -> SegmentationScores:
    """Return the shares of true and of predicted steps of a video that are `covered`, for each of K thresholds.

    The released scores are their means over videos. Without a predicted step both are 0. The release divides by the
    number of predictions of the video before then, which leaves 0, and fails where the video is the first. Raises
    ValueError where there is no true step.
    """
    first, second = covered(true, predicted, thresholds)
    _check(len(first))
    return SegmentationScores(first.mean(axis=0), second.sum(axis=0) / max(1, len(second)))


def matched_scores(true: ArrayLike, predicted: ArrayLike, thresholds: Sequence[float] = THRESHOLDS) -> MatchedScores:
    """Return the scores of a video where a step counts once: those of the most pairs with an IoU above a threshold.

    The release has no such score. Each true step is in one pair at most, and each predicted one, so that neither a
    long prediction nor a repeated one counts for several. Raises ValueError where there is no true step.
    """
    from scipy.optimize import linear_sum_assignment

    above = _above(true, predicted, thresholds)
    n, m, _ = above.shape
    _check(n)
    pairs = np.array([each[linear_sum_assignment(each, maximize=True)].sum() for each in np.moveaxis(above, -1, 0)])
    return MatchedScores(pairs / n, pairs / max(1, m), 2 * pairs / (n + m))


def _above(true: ArrayLike, predicted: ArrayLike, thresholds: Sequence[float]) -> NDArray[np.bool_]:
    """Return whether each of n true and m predicted steps have an IoU above each of K thresholds, (n, m, K)."""
    return moment_iou(_intervals(true)[:, None], _intervals(predicted))[..., None] > np.array(thresholds)


def _intervals(values: ArrayLike) -> NDArray[np.float64]:
    """Return (..., 2) finite numbers; of an empty list (0, 2)."""
    found = np.asarray(values, dtype=np.float64)
    if found.shape == (0,):
        return np.empty((0, 2))
    if found.shape[-1:] != (2,) or not np.isfinite(found).all():
        raise ValueError(f"intervals must be finite starts and ends in seconds, not an array of shape {found.shape}")
    return found


def _check(n_true: int) -> None:
    if not n_true:
        raise ValueError("there is no true step to find")

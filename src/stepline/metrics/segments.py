"""Temporal segments: their overlap, segmentation metrics that ignore order, and uniform baselines.

Segments are (n, 2) arrays of start and end in seconds, or anything NumPy converts to one, such as a list of pairs.
"""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

Segments = NDArray[np.float64]
Grid = Literal["continuous", "label_1fps"]
"""Whether segments are compared unchanged or as labels of whole seconds, see `mean_iou`."""


def as_segments(values: ArrayLike) -> Segments:
    """Return segments as an (n, 2) array of start and end in seconds; an empty list returns (0, 2).

    Raises ValueError if values are not pairs of finite numbers, or if an end lies before its start.
    """
    try:
        found = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("segments must be pairs of numbers, start and end in seconds") from None
    if found.shape == (0,):
        return np.empty((0, 2))
    if found.ndim != 2 or found.shape[1] != 2:
        raise ValueError(f"segments must be pairs of start and end in seconds, not an array of shape {found.shape}")
    if not np.isfinite(found).all():
        raise ValueError("starts and ends of segments must be finite, in seconds")
    backward = found[found[:, 1] < found[:, 0]]
    if len(backward):
        raise ValueError(f"a segment ends before its start: {backward[0, 0]:g} to {backward[0, 1]:g} s")
    return found


def intersection(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the overlap of segments in seconds.

    first, second: (2, ...), starts and ends, broadcast over all axes but the first.
    """
    shared: NDArray[np.float64] = np.minimum(first[1], second[1])
    shared -= np.maximum(first[0], second[0])
    return np.maximum(shared, 0, out=shared)


def broadcast_iou(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return `iou` for arrays in the form that `intersection` accepts."""
    shared = intersection(first, second)
    union: NDArray[np.float64] = (first[1] - first[0] + 1e-8) + (second[1] - second[0])
    union -= shared
    shared /= union
    return shared


def iou(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Return the intersection over union of each of n segments with each of m segments, (n, m), in [0, 1).

    As in the released evaluations, 1e-8 s is added to the union, so a segment of length 0 overlaps nothing.
    """
    return broadcast_iou(*_each_with_each(as_segments(first), as_segments(second)))


def mean_iou(gt: ArrayLike, pred: ArrayLike, *, grid: Grid = "continuous") -> float:
    """Return mIoU of a video, in [0, 1]: the mean over true segments of the best IoU with a predicted segment (Eq. 4).

    One predicted segment may be the best match of several true ones, and more predictions never lower the result. It is
    0 if either side has no segments. The metric is from Zhou et al. (2018), Towards Automatic Learning of Procedures;
    the equation number is from Batra et al. (2022), A Closer Look at Temporal Ordering in the Segmentation of
    Instructional Videos.

    grid: ``label_1fps`` labels each whole second from int(start) to int(end) - 1 with the number of its segment, the
    later one in the input if segments overlap, and compares runs of equal labels. The length of a run is its last
    second minus its first. Each segment is therefore a second too short, a segment of one second overlaps nothing, and
    a shorter one is lost. Only this grid reproduces mIoU and mJaccard in Table 1 of Batra et al. Precision and recall
    in that table use unchanged segments, so its columns are not comparable with each other.
    """
    return _mean_best(iou(_on_grid(gt, grid), _on_grid(pred, grid)))


def mean_jaccard(gt: ArrayLike, pred: ArrayLike, *, grid: Grid = "continuous") -> float:
    """Return mJaccard of a video, in [0, 1]: as `mean_iou`, but with the covered fraction of the predicted segment."""
    first, second = _each_with_each(_on_grid(gt, grid), _on_grid(pred, grid))
    shared = intersection(first, second)
    length = np.broadcast_to(second[1] - second[0], shared.shape)
    return _mean_best(np.divide(shared, length, out=np.zeros_like(shared), where=length > 0))


def detection(gt: ArrayLike, pred: ArrayLike, *, threshold: float) -> tuple[float, float]:
    """Return a video's precision and recall at a temporal IoU, in [0, 1] (Eq. 1 and 2 of Batra et al. 2022).

    Precision is the fraction of predicted segments whose IoU with any true segment is above the threshold (not equal to
    it). Recall is the same fraction of true segments. The matching is not one to one. Both are 0 if either side has no
    segments.
    """
    above = iou(gt, pred) > threshold
    if not above.size:
        return 0.0, 0.0
    return float(above.any(axis=0).mean()), float(above.any(axis=1).mean())


def uniform(total_s: float, parts: int) -> Segments:
    """Return (parts, 2) segments of equal length that fill total_s seconds: a baseline without a model.

    Raises ValueError if parts is below 1 or total_s is not positive and finite.
    """
    if parts < 1 or not 0 < total_s < math.inf:
        raise ValueError(f"{total_s} s cannot be divided into {parts} parts")
    edges = np.linspace(0, total_s, parts + 1)
    return np.column_stack((edges[:-1], edges[1:]))


def whole_seconds(duration_s: float) -> float:
    """Return floor(duration) + 1 s: the video length in the released uniform baselines (rule ``ceil_seconds``)."""
    return float(math.floor(duration_s) + 1)


def _each_with_each(first: Segments, second: Segments) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return first.T[:, :, None], second.T[:, None]


def _on_grid(values: ArrayLike, grid: Grid) -> Segments:
    segments = as_segments(values)
    if grid == "continuous":
        return segments
    if grid != "label_1fps":
        raise ValueError(f"grid must be continuous or label_1fps, not {grid!r}")
    if not len(segments):
        return segments
    seconds = np.trunc(segments).astype(np.intp)
    origin = seconds.min()
    labels = np.zeros(seconds.max() - origin, np.intp)
    for label, (first, end) in enumerate(seconds - origin, start=1):
        labels[first:end] = label
    edges = np.flatnonzero(np.diff(labels, prepend=0, append=0))
    runs = np.column_stack((edges[:-1], edges[1:] - 1))
    return as_segments(runs[labels[edges[:-1]] > 0] + origin)


def _mean_best(worth: NDArray[np.float64]) -> float:
    return float(worth.max(axis=1).mean()) if worth.size else 0.0

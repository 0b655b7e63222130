"""Non-maximum suppression and voting for temporal segments."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Whole = NDArray[np.int64]

EPSILON = np.float32(1e-6)
"""The value added to the length of a segment in suppression, as in the release."""


def suppressed(
    segments: Floats,
    scores: Floats,
    groups: Whole,
    *,
    method: Literal["soft", "hard"],
    iou: float,
    sigma: float,
    min_score: float,
    most: int,
) -> tuple[Whole, Floats]:
    """Return the indices of the kept segments, best first, at most ``most``, and their scores after suppression.

    segments: (N, 2), start and end. scores, groups: (N,). The remaining segment with the highest score is kept, and
    suppresses the remaining segments of its group. ``soft`` multiplies their scores by exp(-IoU^2 / sigma), regardless
    of ``iou``, and then drops those below ``min_score``, so the best segment of a group is never tested. ``hard``
    starts with the segments above ``min_score`` and drops those with an IoU of at least ``iou``.
    ``hard`` keeps the first of equal scores. So does ``soft``, but in an order that changes as in ActionFormer's
    ``nms_cpu.cpp``: a kept segment is swapped with the first remaining one, and the last one takes the position of each
    dropped one. Between groups, the first group wins a tie. Times and scores are rounded to float32, as in the release.
    Kept scores never increase, so the groups are processed separately and merged: at most ``most`` iterations, each on
    one group.
    """
    order = np.lexsort((-scores, groups)) if method == "hard" else np.argsort(groups, kind="stable")
    if method == "hard":
        order = order[scores[order] > min_score]
    length = segments[:, 1] - segments[:, 0] + EPSILON
    start, end, length, left = rows = np.stack((*segments.T, length, scores)).astype(np.float32)[:, order]
    _, first, size = np.unique(groups[order], return_index=True, return_counts=True)
    of, stop = np.repeat(np.arange(len(first)), size), first + size
    taken: list[int] = []
    found: list[np.float32] = []
    while len(taken) < min(most, len(order)) and left.max() > -np.inf:
        best = int(left.argmax())
        group = of[best]
        top = first[group]
        for each in (*rows, order):
            each[top], each[best] = each[best], each[top]
        taken.append(int(order[top]))
        found.append(left[top])
        left[top] = -np.inf
        first[group] = top + 1
        rest = slice(top + 1, stop[group])
        shared = np.maximum(np.minimum(end[rest], end[top]) - np.maximum(start[rest], start[top]), np.float32(0))
        overlap = shared / (length[top] + length[rest] - shared)
        if method == "soft":
            left[rest] *= np.exp(-(overlap * overlap) / np.float32(sigma))
            kept = left[rest] >= np.float32(min_score)
        else:
            kept = overlap < np.float32(iou)
        if not kept.all():
            place = np.flatnonzero(kept)
            n = len(place)
            if method == "soft":
                moved = place[place >= n][::-1]
                place = np.arange(n)
                place[~kept[:n]] = moved
            for each in (*rows, order):
                each[top + 1 : top + 1 + n] = each[rest][place]
            left[top + 1 + n : stop[group]] = -np.inf
            stop[group] = top + 1 + n
    return np.array(taken, np.int64), np.array(found, np.float32)


def voted(segments: Floats, others: Floats, scores: Floats, iou: float) -> Floats:
    """Return (n, 2) segments, each the weighted mean of the ``others`` (N, 2) with an IoU of at least ``iou`` with it.

    The weights are score times IoU. scores: (N,), of the others. A segment of length 0 becomes NaN, as in the release.
    """
    start, end = segments.T[:, :, None]
    shared = np.maximum(np.minimum(end, others[:, 1]) - np.maximum(start, others[:, 0]), np.float32(0))
    with np.errstate(divide="ignore", invalid="ignore"):
        overlap = shared / ((end - start) + (others[:, 1] - others[:, 0]) - shared)
        weights = (overlap >= np.float32(iou)) * scores * overlap
        weights /= weights.sum(axis=1, keepdims=True)
    mean: Floats = weights @ others
    return mean

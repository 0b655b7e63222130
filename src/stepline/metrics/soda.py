"""SODA-D and SODA-C: segments are matched one to one in temporal order, and precision and recall sum the overlaps.

SODA-D is from Batra et al. (2022), A Closer Look at Temporal Ordering in the Segmentation of Instructional Videos,
Eq. 5 and 6. SODA-C is from Fujita et al. (2020), SODA: Story Oriented Dense Video Captioning Evaluation Framework.
Segments are as in `stepline.metrics.segments`; all values are fractions in [0, 1].
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stepline.metrics.segments import Segments, as_segments, broadcast_iou, iou

Order = Literal["start_end", "start"]
"""The sort key of a video's segments. ``start_end``: start, then end, so the order of the input does not matter.
``start``: start only, with ties in the order of the input, as in SODA's released code."""
Missing = Literal["zero", "drop"]
"""How a video without predictions enters the mean. ``zero``: it scores 0. ``drop``: it is excluded, as in SODA's
released code."""

_CELLS = 1 << 20
"""The number of segment pairs computed at once, unless a single video has more: 8 MiB per array."""


class SodaScore(NamedTuple):
    """Precision, recall and F1 of a video, in [0, 1]."""

    precision: float
    recall: float
    f1: float


class SodaScores(NamedTuple):
    """Precision, recall and F1 of each video, (N,) each, in [0, 1]."""

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]


class DatasetScore(NamedTuple):
    """Means over videos, each column separately: f1 is not the harmonic mean of precision and recall.

    n_videos: the number of videos in gt. n_predicted: the number of these with a predicted segment.
    """

    precision: float
    recall: float
    f1: float
    n_videos: int
    n_predicted: int


def soda_d(gt: ArrayLike, pred: ArrayLike, *, order: Order = "start_end") -> SodaScore:
    """Return SODA-D of a video, from the largest sum of IoUs over all one-to-one matchings in temporal order.

    Precision is that sum divided by the number of predicted segments, recall the sum divided by the number of true
    segments. All values are 0 if either side has no segments. Raises ValueError if the segments are invalid (see
    `as_segments`) or the order is unknown.
    """
    found = soda_d_videos([as_segments(gt)], [as_segments(pred)], order=order)
    return SodaScore(*(float(values[0]) for values in found))


def soda_c(gt: ArrayLike, pred: ArrayLike, similarity: ArrayLike, *, order: Order = "start_end") -> SodaScore:
    """Return SODA-C of a video: as `soda_d`, with each pair's IoU multiplied by the similarity of its captions.

    similarity: (n, m), such as METEOR; element (i, j) belongs to gt[i] and pred[j] in the order of the input. Raises
    ValueError also if it has another shape or is not finite.
    """
    (first, first_order), (second, second_order) = _sorted(gt, order), _sorted(pred, order)
    n, m = len(first), len(second)
    if not n or not m:
        return SodaScore(0.0, 0.0, 0.0)
    scores = np.asarray(similarity, dtype=np.float64)
    if scores.shape != (n, m) or not np.isfinite(scores).all():
        raise ValueError(f"similarity must be {n} x {m} finite numbers")
    worth = iou(first, second) * scores[np.ix_(first_order, second_order)]
    found = _scores(_table(worth[:, :, None])[-1, -1], np.array([n]), np.array([m]))
    return SodaScore(*(float(values[0]) for values in found))


def soda_d_videos(gt: Sequence[ArrayLike], pred: Sequence[ArrayLike], *, order: Order = "start_end") -> SodaScores:
    """Return SODA-D of N videos at once, equal to `soda_d` of each.

    gt, pred: the segments of the same N videos. Videos of similar size are computed together, so the largest one bounds
    the memory. Raises ValueError as `soda_d`, and if the numbers of videos differ.
    """
    if len(gt) != len(pred):
        raise ValueError(f"true segments of {len(gt)} videos, predicted ones of {len(pred)}")
    (gt_rows, n_gt), (pred_rows, n_pred) = _joined(gt), _joined(pred)
    sums = np.empty(len(gt))
    sizes = np.maximum(1, np.maximum(n_gt, n_pred))
    largest_first = np.argsort(-sizes)
    start = 0
    while start < len(gt):
        videos = largest_first[start : start + max(1, _CELLS // sizes[largest_first[start]] ** 2)]
        first = _padded(gt_rows, n_gt, videos, order)
        second = _padded(pred_rows, n_pred, videos, order)
        sums[videos] = _table(broadcast_iou(first[:, :, None], second[:, None]))[-1, -1]
        start += len(videos)
    return _scores(sums, n_gt, n_pred)


def matched(gt: ArrayLike, pred: ArrayLike, *, order: Order = "start_end") -> list[tuple[int, int]]:
    """Return the pairs that SODA-D matches, (index in gt, index in pred), in temporal order.

    Ties between matchings with equal sums are broken from the last segments to the first: a true segment is skipped if
    that does not lower the sum, otherwise a predicted one is, so earlier segments are matched. Pairs that do not
    overlap are never listed. Raises ValueError as `soda_d`.
    """
    (first, first_order), (second, second_order) = _sorted(gt, order), _sorted(pred, order)
    table = _table(iou(first, second)[:, :, None])[:, :, 0]
    i, j = len(first), len(second)
    pairs = []
    while i and j:
        if table[i, j] == table[i - 1, j]:
            i -= 1
        elif table[i, j] == table[i, j - 1]:
            j -= 1
        else:
            i, j = i - 1, j - 1
            pairs.append((int(first_order[i]), int(second_order[j])))
    return pairs[::-1]


def soda_d_dataset(
    gt: Mapping[str, ArrayLike],
    pred: Mapping[str, ArrayLike],
    *,
    order: Order = "start_end",
    missing: Missing = "zero",
) -> DatasetScore:
    """Return the means of SODA-D over videos.

    gt, pred: segments by video. missing: how videos without predicted segments enter the mean. Raises ValueError as
    `soda_d`, if pred has a video that gt does not have, and if there is no video to score.
    """
    if missing not in get_args(Missing):
        raise ValueError(f"missing must be zero or drop, not {missing!r}")
    unknown = next((video for video in pred if video not in gt), None)
    if unknown is not None:
        raise ValueError(f"predictions of {unknown}, a video without true segments")
    predicted = {video for video, segments in pred.items() if len(as_segments(segments))}
    videos = list(gt) if missing == "zero" else [video for video in gt if video in predicted]
    if not videos:
        raise ValueError("there is no video to score")
    found = soda_d_videos([gt[video] for video in videos], [pred.get(video, []) for video in videos], order=order)
    precision, recall, f1 = (float(values.mean()) for values in found)
    return DatasetScore(precision, recall, f1, n_videos=len(gt), n_predicted=len(predicted))


def _table(worth: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the tables of Eq. 5 for N videos, (n + 1, m + 1, N), given the value of each pair, (n, m, N)."""
    n, m, videos = worth.shape
    table = np.zeros((n + 1, m + 1, videos))
    for above, row, worth_here in zip(table, table[1:], worth, strict=False):
        np.add(above[:-1], worth_here, out=row[1:])
        np.maximum(row, above, out=row)
        step = 1
        while step <= m:  # a running maximum, faster than np.maximum.accumulate
            np.maximum(row[step:], row[:-step], out=row[step:])
            step *= 2
    return table


def _scores(sums: NDArray[np.float64], n_gt: NDArray[np.intp], n_pred: NDArray[np.intp]) -> SodaScores:
    """Return Eq. 6 for the sums of N videos."""
    return SodaScores(*(sums / np.maximum(1, n) for n in (n_pred, n_gt, (n_gt + n_pred) / 2)))


def _ordering(starts: NDArray[np.float64], ends: NDArray[np.float64], order: Order) -> NDArray[np.intp]:
    """Return the indices that sort segments along the last axis."""
    if order not in get_args(Order):
        raise ValueError(f"order must be start_end or start, not {order!r}")
    return np.lexsort((starts,) if order == "start" else (ends, starts))


def _sorted(values: ArrayLike, order: Order) -> tuple[Segments, NDArray[np.intp]]:
    segments = as_segments(values)
    indices = _ordering(segments[:, 0], segments[:, 1], order)
    return segments[indices], indices


def _joined(videos: Sequence[Any]) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the starts and ends of all segments after a padding segment of 0 to 0 s, (2, 1 + all), and the counts."""
    try:
        counts = np.fromiter(map(len, videos), np.intp, len(videos))
        if all(isinstance(video, list) for video in videos):  # np.concatenate takes three times as long
            if {*map(len, chain.from_iterable(videos))} - {2}:
                raise ValueError
            numbers = chain((0.0, 0.0), chain.from_iterable(chain.from_iterable(videos)))
            rows = np.fromiter(numbers, np.float64, 2 + 2 * int(counts.sum())).reshape(-1, 2)
        else:
            rows = np.concatenate([[(0.0, 0.0)], *filter(len, videos)])
    except (TypeError, ValueError):
        raise ValueError("segments must be pairs of numbers, start and end in seconds") from None
    return np.ascontiguousarray(as_segments(rows).T), counts


def _padded(
    rows: NDArray[np.float64], counts: NDArray[np.intp], videos: NDArray[np.intp], order: Order
) -> NDArray[np.float64]:
    """Return the sorted starts and ends of N videos' segments, (2, k, N).

    Videos with fewer than k segments are padded with segments of 0 to 0 s, which overlap nothing and change no sum.
    """
    column = np.arange(counts[videos].max())
    first = 1 + np.cumsum(counts) - counts
    index = np.where(column < counts[videos, None], first[videos, None] + column, 0)
    in_order = _ordering(rows[0].take(index), rows[1].take(index), order)
    return rows.take(np.take_along_axis(index, in_order, axis=1).T, axis=1)

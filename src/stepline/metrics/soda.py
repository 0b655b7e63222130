"""SODA-D and SODA-C: segments are matched one to one in temporal order, and precision and recall count their overlap.

Batra et al. (2022), A Closer Look at Temporal Ordering in the Segmentation of Instructional Videos, Eq. 5 and 6; SODA-C
is Fujita et al. (2020), SODA: Story Oriented Dense Video Captioning Evaluation Framework. Segments are as in
`stepline.metrics.segments`; all values are fractions in [0, 1].
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stepline.metrics.segments import Segments, as_segments, broadcast_iou, iou

Order = Literal["start_end", "start"]
"""What puts a video's segments in order. start_end: start, then end, so the order of the input has no influence. start:
start alone, segments that start together as they come in the input, as SODA's released code has it."""
Missing = Literal["zero", "drop"]
"""What a video without a prediction counts in the mean. zero: 0. drop: nothing, as in SODA's released code."""

_CELLS = 1 << 20
"""How many pairs of segments are looked at at once, if a video does not have more: 8 MiB an array."""


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
    """The means over videos, of each column alone: f1 is not the harmonic mean of the other two.

    n_videos: how many videos gt names; n_predicted: how many of them have a predicted segment.
    """

    precision: float
    recall: float
    f1: float
    n_videos: int
    n_predicted: int


def soda_d(gt: ArrayLike, pred: ArrayLike, *, order: Order = "start_end") -> SodaScore:
    """Return SODA-D of a video: the largest sum of IoUs over ordered one-to-one matchings, over counts of segments.

    Precision is the sum over the number of predicted segments, recall over that of true ones. All are 0 where either
    has no segments. Raises ValueError where these are no segments (see `as_segments`) or the order is unknown.
    """
    found = soda_d_videos([as_segments(gt)], [as_segments(pred)], order=order)
    return SodaScore(*(float(values[0]) for values in found))


def soda_c(gt: ArrayLike, pred: ArrayLike, similarity: ArrayLike, *, order: Order = "start_end") -> SodaScore:
    """Return SODA-C of a video: as `soda_d`, each pair's IoU times the similarity of its captions.

    similarity: (n, m), row i and column j of gt[i] and pred[j] as they come in the input, such as METEOR. Raises
    ValueError also where it has another shape or is not finite.
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
    """Return SODA-D of N videos at once, each as `soda_d` gives it.

    gt, pred: the segments of the same N videos. Videos of about the same size are computed together, so memory is
    bounded by the largest one. Raises ValueError as `soda_d`, and where the numbers of videos differ.
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

    Where several matchings have the same sum: from the last segments to the first, a true segment is left out where
    that costs nothing, else a predicted one is; so of equals the earliest are matched. Pairs that do not overlap are
    never listed. Raises ValueError as `soda_d`.
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

    gt, pred: the segments of videos by their names. missing: what the videos count for which pred has no segments.
    Raises ValueError as `soda_d`, where pred names a video that gt does not, and where there is no video to take the
    mean of.
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
    """Return Eq. 5's table of N videos at once, (n + 1, m + 1, N), of what each pair is worth, (n, m, N)."""
    n, m, videos = worth.shape
    table = np.zeros((n + 1, m + 1, videos))
    for above, row, worth_here in zip(table, table[1:], worth, strict=False):
        np.add(above[:-1], worth_here, out=row[1:])
        np.maximum(row, above, out=row)
        step = 1
        while step <= m:  # the running maximum; np.maximum.accumulate takes longer
            np.maximum(row[step:], row[:-step], out=row[step:])
            step *= 2
    return table


def _scores(sums: NDArray[np.float64], n_gt: NDArray[np.intp], n_pred: NDArray[np.intp]) -> SodaScores:
    """Return Eq. 6 of the sums of N videos."""
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
    """Return starts and ends of all videos' segments after one of 0 to 0 s, (2, 1 + all), and how many each has."""
    try:
        counts = np.fromiter(map(len, videos), np.intp, len(videos))
        if all(isinstance(video, list) for video in videos):  # numpy takes three times as long for nested lists
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
    """Return starts and ends of some videos' segments in order, (2, k, N).

    Videos with fewer are filled up with segments of 0 to 0 s: these overlap nothing, so they change no sum.
    """
    column = np.arange(counts[videos].max())
    first = 1 + np.cumsum(counts) - counts
    index = np.where(column < counts[videos, None], first[videos, None] + column, 0)
    in_order = _ordering(rows[0].take(index), rows[1].take(index), order)
    return rows.take(np.take_along_axis(index, in_order, axis=1).T, axis=1)

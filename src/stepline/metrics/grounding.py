"""Article grounding: mean average precision of steps found in videos, as released with HT-Step and as in its paper.

Afouras et al. (2023), HT-Step: Aligning Instructional Articles with How-To Videos; ``eval_article_grounding.py``. An
article is an activity in one variation.

There are two readings. In the paper the steps of an article are text queries, but the released evaluation never
compares steps. "official" follows the release: a prediction can match any true segment of its video. "per_query": it
can only match true segments of its own step.
"""

import math
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stepline.metrics.average_precision import average_precision

TIOUS = tuple(np.linspace(0.3, 0.7, 5).tolist())
"""The thresholds of temporal IoU. In floating point the second is slightly below 0.4."""
LEAST_S = 1e-3
"""The shortest true segment. Two segments of a step with both ends within this distance are duplicates."""

Article = tuple[str, str]
"""An activity and its variation."""
Query = tuple[str, int]
"""A video and a step of its article."""
Reading = Literal["official", "per_query"]
MatchType = Literal["full", "partial"]


class TrueSegments(NamedTuple):
    """N true segments of one split; segments of a video are in the order of the annotation.

    video: (N,) ids. start_s, end_s: (N,) seconds. step: (N,) ids, keys of ``articles``. label: (N,) keys that identify
    duplicates, the annotation's ``label_id``; by default the step. full: (N,) whether a segment is a full or a partial
    match of its step, for `match_type_grounding`.
    """

    video: Sequence[str]
    start_s: ArrayLike
    end_s: ArrayLike
    step: Sequence[int]
    label: Sequence[Hashable] | None = None
    full: Sequence[bool] | None = None


class PredictedSegments(NamedTuple):
    """N predicted segments, (N,) each, in any order. step: ids of any steps. score: higher means more confident."""

    video: Sequence[str]
    start_s: ArrayLike
    end_s: ArrayLike
    step: Sequence[int]
    score: ArrayLike


class Dropped(NamedTuple):
    """The numbers of predictions that are not scored; each counts once, under the first reason that applies.

    other_article: the step does not belong to the video's article. other_kind: the video has a segment of the step that
    is not of the kind. unused_step: no video has a scored true segment of the step (official reading only). no_truth:
    no video of the activity has a scored true segment.
    """

    other_article: int
    other_kind: int
    unused_step: int
    no_truth: int


class GroundingScores(NamedTuple):
    """Average precisions in [0, 1], and the numbers of segments.

    activities: the A activities with a true segment, sorted. ap: (A, K), for each activity and threshold. at: (K,), the
    means over activities. mean: the mean of ``at``, the released mAP. n_true, n_predicted: (A,), the numbers of true
    segments and scored predictions. dropped: the other predictions.
    """

    activities: tuple[str, ...]
    ap: NDArray[np.float64]
    at: NDArray[np.float64]
    mean: float
    n_true: NDArray[np.int64]
    n_predicted: NDArray[np.int64]
    dropped: Dropped


def article_grounding(
    true: TrueSegments,
    predicted: PredictedSegments,
    articles: Mapping[int, Article],
    *,
    reading: Reading = "official",
    thresholds: Sequence[float] = TIOUS,
) -> GroundingScores:
    """Return the average precision of each activity, over all predictions of its videos.

    articles: the activity and variation of each step. A prediction is scored if its step belongs to the video's
    article. This is an oracle: other steps are not queries of the video. The official reading also ignores a prediction
    whose step has no true segment in the split. With "per_query" such a prediction is false, like any prediction of a
    step that its video does not show.

    Predictions are visited by descending score, ties in the order of the input. Each matches the unmatched true segment
    with the highest IoU that reaches the threshold, the last one if IoUs are equal. Other predictions are false. The
    official reading allows all true segments of the video, "per_query" only those of the predicted step.

    The release orders equal scores in a way that depends on the build of NumPy. As in the release, a prediction with an
    IoU of NaN is true: reject `reversed_segments` first. Raises ValueError if a prediction is for a video without a
    true segment, if the true steps of a video belong to two articles or to none, if a score is NaN, or if no true
    segment is long enough.
    """
    return _scores(true, predicted, articles, None, reading, thresholds)


def match_type_grounding(
    true: TrueSegments,
    predicted: PredictedSegments,
    articles: Mapping[int, Article],
    kind: MatchType,
    *,
    reading: Reading = "per_query",
    thresholds: Sequence[float] = TIOUS,
) -> GroundingScores:
    """Return `article_grounding` over the queries without a segment of the other kind (appendix D.2 of the paper).

    A query is a video and a step of its article. Queries with only segments of the kind are scored, and so are queries
    without segments. Queries with a segment of the other kind are excluded with all their segments and predictions.
    Activities without a segment of the kind do not enter the mean. The paper counts 78 activities and 1176 segments for
    full matches, and 79 and 2375 for partial ones. No code for this was released; "official" applies the released
    evaluation to the remaining segments. Raises ValueError as `article_grounding`, and if ``true.full`` is None.
    """
    return _scores(true, predicted, articles, kind, reading, thresholds)


def reversed_segments(predicted: PredictedSegments) -> NDArray[np.int64]:
    """Return the indices of predictions that end before they start, or whose length is NaN.

    The released evaluation counts a prediction with NaN as true, and also a reversed one as long as a true segment.
    """
    with np.errstate(invalid="ignore"):
        lengths_s = np.diff(_bounds(predicted))[:, 0]
    return np.flatnonzero(~(lengths_s >= 0))


class _Truth(NamedTuple):
    """The scored ground truth. by_activity: indices of the true segments. used: their steps."""

    of_video: dict[str, Article]
    by_activity: dict[str, list[int]]
    other_kind: set[Query]
    used: set[int]


def _scores(
    true: TrueSegments,
    predicted: PredictedSegments,
    articles: Mapping[int, Article],
    kind: MatchType | None,
    reading: Reading,
    thresholds: Sequence[float],
) -> GroundingScores:
    segments, guesses, true_queries, queries = _bounds(true), _bounds(predicted), _queries(true), _queries(predicted)
    truth = _truth(true, segments, true_queries, articles, kind)
    ranked, dropped = _ranked(predicted, queries, articles, truth, reading)
    n_shared = 1 if reading == "official" else 2  # a match shares the video, or the video and the step
    ap = np.zeros((len(ranked), len(thresholds)))
    for place, (activity, rows) in enumerate(ranked.items()):
        indices = truth.by_activity[activity]
        numbers: dict[Hashable, int] = {}
        own = [numbers.setdefault(true_queries[index][:n_shared], len(numbers)) for index in indices]
        found = np.array([numbers.get(queries[row][:n_shared], -1) for row in rows], dtype=np.int64)
        hits = _hits(guesses[rows], segments[indices], found[:, None] == np.array(own), thresholds)
        order = -np.arange(len(rows), dtype=np.float64)
        ap[place] = [each.sum() / len(own) * average_precision(order, each) if each.any() else 0.0 for each in hits.T]
    at = ap.mean(axis=0)
    n_true, n_predicted = (np.array([len(each[name]) for name in ranked]) for each in (truth.by_activity, ranked))
    return GroundingScores(tuple(ranked), ap, at, float(at.mean()), n_true, n_predicted, dropped)


def _truth(
    true: TrueSegments,
    segments: NDArray[np.float64],
    queries: list[Query],
    articles: Mapping[int, Article],
    kind: MatchType | None,
) -> _Truth:
    of_video: dict[str, Article] = {}
    for video, step in queries:
        article = articles.get(step)
        if article is None or of_video.setdefault(video, article) != article:
            raise ValueError(f"{video} has a true step, {step}, that is of no article or of another than the first")
    kept = _distinct(true, segments)
    other_kind: set[Query] = set()
    if kind is not None:
        if true.full is None:
            raise ValueError("the true segments do not say which of them are full matches")
        other_kind = {queries[index] for index in kept if bool(true.full[index]) != (kind == "full")}
    kept = [index for index in kept if queries[index] not in other_kind]
    if not kept:
        raise ValueError("there is no true segment to find")
    by_activity: dict[str, list[int]] = defaultdict(list)
    for index in kept:
        by_activity[of_video[queries[index][0]][0]].append(index)
    return _Truth(of_video, by_activity, other_kind, {queries[index][1] for index in kept})


def _ranked(
    predicted: PredictedSegments,
    queries: list[Query],
    articles: Mapping[int, Article],
    truth: _Truth,
    reading: Reading,
) -> tuple[dict[str, list[int]], Dropped]:
    """Return the rows of the scored predictions by activity, best first, and the numbers of the other predictions."""
    scores = np.asarray(predicted.score, dtype=np.float64).tolist()
    if any(map(math.isnan, scores)):
        raise ValueError("a prediction has the score NaN")
    ranked: dict[str, list[int]] = {activity: [] for activity in sorted(truth.by_activity)}
    dropped = dict.fromkeys(Dropped._fields, 0)
    for row, query in enumerate(queries):
        video, step = query
        article = truth.of_video.get(video)
        if article is None:
            raise ValueError(f"there is a prediction of {video}, a video without a true segment")
        if articles.get(step) != article:
            dropped["other_article"] += 1
        elif query in truth.other_kind:
            dropped["other_kind"] += 1
        elif reading == "official" and step not in truth.used:
            dropped["unused_step"] += 1
        elif article[0] not in ranked:
            dropped["no_truth"] += 1
        else:
            ranked[article[0]].append(row)
    for rows in ranked.values():
        rows.sort(key=scores.__getitem__, reverse=True)
    return ranked, Dropped(**dropped)


def _queries(segments: TrueSegments | PredictedSegments) -> list[Query]:
    """Return the video and the step of each segment."""
    return list(zip(segments.video, np.asarray(segments.step).tolist(), strict=True))


def _bounds(segments: TrueSegments | PredictedSegments) -> NDArray[np.float64]:
    """Return the start and the end of each segment, (N, 2)."""
    return np.stack([np.asarray(each, dtype=np.float64) for each in (segments.start_s, segments.end_s)], axis=-1)


def _distinct(true: TrueSegments, segments: NDArray[np.float64]) -> list[int]:
    """Return the indices of the true segments that are long enough and do not duplicate an earlier one."""
    kept: list[int] = []
    seen: dict[tuple[str, Hashable], list[tuple[float, float]]] = defaultdict(list)
    labels = true.step if true.label is None else true.label
    for index, (video, label, (start_s, end_s)) in enumerate(zip(true.video, labels, segments.tolist(), strict=True)):
        before = seen[video, label]
        if end_s - start_s >= LEAST_S and not any(
            abs(start_s - other[0]) <= LEAST_S and abs(end_s - other[1]) <= LEAST_S for other in before
        ):
            before.append((start_s, end_s))
            kept.append(index)
    return kept


def _hits(
    guesses: NDArray[np.float64],
    segments: NDArray[np.float64],
    can_take: NDArray[np.bool_],
    thresholds: Sequence[float],
) -> NDArray[np.bool_]:
    """Return whether each of P predictions, best first, matches one of n true segments at each of K thresholds, (P, K).

    can_take: (P, n), whether the prediction may match the true segment, regardless of their overlap.
    """
    rows, indices = np.nonzero(can_take)
    overlaps = _overlaps(guesses[rows], segments[indices])
    near = ~(overlaps < min(thresholds))
    rows, indices, overlaps = rows[near], indices[near], overlaps[near]
    order = np.lexsort((-indices, -overlaps, rows))
    rows, indices, overlaps = rows[order], indices[order], overlaps[order]
    hits = np.zeros((len(guesses), len(thresholds)), np.bool_)
    for column, threshold in enumerate(thresholds):
        found: set[int] = set()
        taken: set[int] = set()
        reached = ~(overlaps < threshold)
        for row, index in zip(rows[reached].tolist(), indices[reached].tolist(), strict=True):
            if row not in found and index not in taken:
                found.add(row)
                taken.add(index)
        hits[list(found), column] = True
    return hits


def _overlaps(guesses: NDArray[np.float64], segments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the IoU of each of n pairs; NaN if both segments have length 0."""
    shared = np.minimum(guesses[:, 1], segments[:, 1]) - np.maximum(guesses[:, 0], segments[:, 0])
    shared = shared.clip(0)
    union = (segments[:, 1] - segments[:, 0]) + (guesses[:, 1] - guesses[:, 0]) - shared
    with np.errstate(invalid="ignore"):
        found: NDArray[np.float64] = shared / union
    return found

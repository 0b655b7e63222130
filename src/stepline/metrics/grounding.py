"""Article grounding: mean average precision of steps found in videos, as HT-Step's released evaluation has it.

Afouras et al. (2023), HT-Step: Aligning Instructional Articles with How-To Videos; ``eval_article_grounding.py``. An
article is an activity in one variation.
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stepline.metrics.average_precision import average_precision

TIOUS = tuple(np.linspace(0.3, 0.7, 5).tolist())
"""The thresholds of temporal IoU; the second is a little less than 0.4."""
LEAST_S = 1e-3
"""A true segment is no shorter; one whose ends are both as near to another's, of the same step, is a repeat of it."""


class TrueSegments(NamedTuple):
    """N true segments of one split, those of a video in the order of the annotation.

    video: (N,) ids. start_s, end_s: (N,) seconds. step: (N,) ids, keys of ``articles``. label: (N,) by what repeats are
    told, where the annotation has a ``label_id``; by default the step.
    """

    video: Sequence[str]
    start_s: ArrayLike
    end_s: ArrayLike
    step: Sequence[int]
    label: Sequence[Hashable] | None = None


class PredictedSegments(NamedTuple):
    """N predicted segments, (N,) each, in any order; step: ids of any step. score: higher is more certain."""

    video: Sequence[str]
    start_s: ArrayLike
    end_s: ArrayLike
    step: Sequence[int]
    score: ArrayLike


class GroundingScores(NamedTuple):
    """Average precisions in [0, 1].

    activities: the A that have a true segment, sorted. ap: (A, K), of each at each of K thresholds. at: (K,), the means
    over activities. mean: that of ``at``, the released mAP.
    """

    activities: tuple[str, ...]
    ap: NDArray[np.float64]
    at: NDArray[np.float64]
    mean: float


def article_grounding(
    true: TrueSegments,
    predicted: PredictedSegments,
    articles: Mapping[int, tuple[str, str]],
    *,
    thresholds: Sequence[float] = TIOUS,
) -> GroundingScores:
    """Return the average precision of each activity.

    articles: of each step, its activity and variation. A prediction counts if its step is one of the video's article,
    which is an oracle, and is true somewhere in the split; all others are left out. In the order of their scores, of
    equal scores in that of the input, predictions take the true segment of their video with the highest IoU that is
    free and reaches the threshold, of equal IoUs the last one; the others are false. That the two are of the same step
    is not asked.

    The release sorts equal scores in an order that depends on the build of numpy. As there, a prediction that ends
    before it starts and is as long as a true segment is taken for that, as its IoU is no number: refuse such ones
    before. Raises ValueError where a prediction is of a video without a true segment, two true steps of a video are of
    two articles, a true step is of none, a score is NaN, and where no true segment is long enough.
    """
    of_video: dict[str, tuple[str, str]] = {}
    for video, step in zip(true.video, true.step, strict=True):
        article = articles.get(step)
        if article is None or of_video.setdefault(video, article) != article:
            raise ValueError(f"{video} has a true step, {step}, that is of no article or of another than the first")
    starts_s, ends_s = (np.asarray(each, dtype=np.float64) for each in (true.start_s, true.end_s))
    kept = _distinct(true, starts_s, ends_s)
    by_activity: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for index in kept:
        by_activity[of_video[true.video[index]][0]][true.video[index]].append(index)
    if not by_activity:
        raise ValueError("there is no true segment to find")
    scores = np.asarray(predicted.score, dtype=np.float64)
    if np.isnan(scores).any():
        raise ValueError("a prediction has the score NaN")
    used, rows = {true.step[index] for index in kept}, defaultdict(list)
    for row in np.argsort(-scores, kind="stable").tolist():
        video, step = predicted.video[row], predicted.step[row]
        if video not in of_video:
            raise ValueError(f"there is a prediction of {video}, a video without a true segment")
        if step in used and articles[step] == of_video[video]:
            rows[of_video[video][0]].append(row)
    segments = np.stack((starts_s, ends_s), axis=-1)
    guesses = np.stack([np.asarray(each, dtype=np.float64) for each in (predicted.start_s, predicted.end_s)], axis=-1)
    activities = tuple(sorted(by_activity))
    ap = np.zeros((len(activities), len(thresholds)))
    for place, activity in enumerate(activities):
        own = {video: segments[indices] for video, indices in by_activity[activity].items()}
        found = [(predicted.video[row], guesses[row]) for row in rows[activity]]
        ap[place] = _average_precisions(own, found, np.array(thresholds))
    at = ap.mean(axis=0)
    return GroundingScores(activities, ap, at, float(at.mean()))


def _distinct(true: TrueSegments, starts_s: NDArray[np.float64], ends_s: NDArray[np.float64]) -> list[int]:
    """Return the indices of the true segments that are long enough and repeat none before."""
    kept: list[int] = []
    seen: dict[tuple[str, Hashable], list[tuple[float, float]]] = defaultdict(list)
    labels = true.step if true.label is None else true.label
    for index, (video, label) in enumerate(zip(true.video, labels, strict=True)):
        start_s, end_s = float(starts_s[index]), float(ends_s[index])
        before = seen[video, label]
        if end_s - start_s >= LEAST_S and not any(
            abs(start_s - other[0]) <= LEAST_S and abs(end_s - other[1]) <= LEAST_S for other in before
        ):
            before.append((start_s, end_s))
            kept.append(index)
    return kept


def _average_precisions(
    true: dict[str, NDArray[np.float64]],
    found: list[tuple[str, NDArray[np.float64]]],
    thresholds: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the average precision at each of K thresholds of the predictions of an activity, the best first."""
    free = {video: np.ones((len(segments), len(thresholds)), np.bool_) for video, segments in true.items()}
    hits = np.zeros((len(found), len(thresholds)), np.bool_)
    for hit, (video, guess) in zip(hits, found, strict=True):
        if video not in true:
            continue
        overlap = _overlap(guess, true[video])
        for index in np.argsort(overlap, kind="stable")[::-1]:
            taken = ~hit & free[video][index] & ~(overlap[index] < thresholds)
            free[video][index] &= ~taken
            hit |= taken
    n_true = sum(map(len, true.values()))
    places = -np.arange(len(found), dtype=np.float64)
    return np.array([each.sum() / n_true * average_precision(places, each) if each.any() else 0.0 for each in hits.T])


def _overlap(guess: NDArray[np.float64], segments: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the IoU of a segment with each of n; NaN where they have no length together."""
    shared = np.minimum(guess[1], segments[:, 1]) - np.maximum(guess[0], segments[:, 0])
    shared = shared.clip(0)
    union = (segments[:, 1] - segments[:, 0]) + (guess[1] - guess[0]) - shared
    with np.errstate(invalid="ignore"):
        found: NDArray[np.float64] = shared / union
    return found

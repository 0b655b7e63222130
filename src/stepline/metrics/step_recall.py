"""Recall of steps with one predicted time each: HT-Step's first challenge, and CrossTask's average recall.

A time is a whole second, the index of a row of features. Zhukov et al. (2019), Cross-task weakly supervised learning
from instructional videos; ``train.py`` of its release. The challenge's evaluation was not released; the rule here is
from Han et al. (2022), Temporal alignment networks for long-term video; ``eval_zeroshot_align.py``.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

TaskVideo = tuple[str, str]
"""A task and one of its videos."""


class StepHits(NamedTuple):
    """For K steps of a video: whether each is present, (K,), and whether it is also found, (K,)."""

    present: NDArray[np.bool_]
    hit: NDArray[np.bool_]


class AverageRecall(NamedTuple):
    """Recalls in [0, 1].

    tasks: the n tasks with a present step, sorted. recall, n_steps: (n,), one per task. mean: the mean of ``recall``.
    """

    tasks: tuple[str, ...]
    recall: NDArray[np.float64]
    n_steps: NDArray[np.int64]
    mean: float


class SubsetRecall(NamedTuple):
    """The mean recall of each of n subsets, (n,), with their mean and sample standard deviation (n - 1)."""

    recall: NDArray[np.float64]
    mean: float
    sd: float


def step_hits(
    times_s: ArrayLike, segments_s: ArrayLike, steps: ArrayLike, *, rule: Literal["challenge", "crosstask"]
) -> StepHits:
    """Return which of K steps of a video are present, and which have their time in one of their segments.

    times_s: (K,) whole seconds; NaN is in no segment. segments_s: (n, 2) start and end in seconds. steps: (n,), the
    index of each segment's step. A step without a segment is not present. "challenge": floor(start) <= time <=
    ceil(end). "crosstask": floor(start) <= time < ceil(end), so a segment may contain no second and then does not
    count. The release also ignores segments that start after the last row of features; the caller must do this. Raises
    ValueError if an index is not in [0, K).
    """
    times, places = np.asarray(times_s, dtype=np.float64), np.asarray(steps, dtype=np.int64)
    n_steps = len(times)
    bounds = np.asarray(segments_s, dtype=np.float64).reshape(len(places), 2)
    if len(places) and not 0 <= places.min() <= places.max() < n_steps:
        raise ValueError(f"the segments are of other steps than the {n_steps} that have a time")
    first, end = np.floor(bounds[:, 0]), np.ceil(bounds[:, 1])
    before = np.less if rule == "crosstask" else np.less_equal
    present, hit = np.zeros((2, n_steps), np.bool_)
    present[places[before(first, end)]] = True
    hit[places[(first <= times[places]) & before(times[places], end)]] = True
    return StepHits(present, hit)


def recall(videos: Iterable[StepHits]) -> float:
    """Return the fraction of present steps that are found, over all videos together; NaN if no step is present."""
    hits = list(videos)
    n_present = sum(int(each.present.sum()) for each in hits)
    return sum(int(each.hit.sum()) for each in hits) / n_present if n_present else float("nan")


def average_recall(videos: Mapping[TaskVideo, StepHits]) -> AverageRecall:
    """Return CrossTask's recall of each task, over the present steps of its videos, and the mean over tasks.

    Tasks without a present step are excluded. Raises ValueError if no task remains.
    """
    by_task: dict[str, list[StepHits]] = defaultdict(list)
    for (task, _), hits in sorted(videos.items(), key=lambda each: each[0]):
        by_task[task].append(hits)
    n_steps = {task: sum(int(each.present.sum()) for each in hits) for task, hits in by_task.items()}
    tasks = tuple(task for task, n in n_steps.items() if n)
    if not tasks:
        raise ValueError("there is no present step to find")
    recalls = np.array([recall(by_task[task]) for task in tasks])
    return AverageRecall(tasks, recalls, np.array([n_steps[task] for task in tasks]), float(recalls.mean()))


def random_subsets(
    videos: Mapping[str, Collection[str]],
    *,
    evaluated: Literal["rest", "drawn"],
    seed: int,
    n: int = 20,
    per_task: int = 30,
) -> list[frozenset[TaskVideo]]:
    """Return n random subsets of the videos of each task, each drawn with its own seed derived from ``seed``.

    videos: by task. ``per_task`` videos of each task are drawn without replacement, or all if it has no more.
    evaluated: "rest" returns the videos that were not drawn: CrossTask's release draws from all videos outside
    ``videos_val.csv``, trains on the drawn ones and evaluates on the rest. "drawn" returns the drawn videos: HT-Step's
    paper states "standard protocol" and "20 random subsets of the training videos". Neither list was released. The
    result does not depend on the order of tasks or videos, but on the set of videos: pass all listed videos.
    """
    subsets = []
    for child in np.random.SeedSequence(seed).spawn(n):
        random = np.random.default_rng(child)
        subset: set[TaskVideo] = set()
        for task in sorted(videos):
            order = random.permutation(sorted(videos[task])).tolist()
            subset |= {(task, video) for video in (order[per_task:] if evaluated == "rest" else order[:per_task])}
        subsets.append(frozenset(subset))
    return subsets


def subset_recall(videos: Mapping[TaskVideo, StepHits], subsets: Sequence[Collection[TaskVideo]]) -> SubsetRecall:
    """Return the `average_recall` of each of two or more subsets, over the subset's videos that are in ``videos``."""
    recalls = np.array(
        [average_recall({each: videos[each] for each in subset if each in videos}).mean for subset in subsets]
    )
    return SubsetRecall(recalls, float(recalls.mean()), float(recalls.std(ddof=1)))

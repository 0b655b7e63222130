import math
from statistics import mean, stdev

import numpy as np
import pytest

from stepline.metrics.grounding import PredictedSegments, TrueSegments, article_grounding
from stepline.metrics.step_recall import (
    StepHits,
    average_recall,
    random_subsets,
    recall,
    step_hits,
    subset_recall,
)


def hits(*found: bool | None) -> StepHits:
    """Return those of steps that are found, not found, or not present (None)."""
    return StepHits(np.array([each is not None for each in found]), np.array([each is True for each in found]))


@pytest.mark.parametrize(
    ("time_s", "challenge", "crosstask"),
    [
        (9, False, False),
        (10, True, True),
        (13, True, True),
        (14, True, False),
        (15, False, False),
        (math.nan,) + (False,) * 2,
    ],
)
def test_the_rules_of_both_at_the_ends_of_a_segment(time_s: float, challenge: int, crosstask: int) -> None:
    assert step_hits([time_s], [[10.9, 13.2]], [0], rule="challenge").hit.tolist() == [challenge]
    assert step_hits([time_s], [[10.9, 13.2]], [0], rule="crosstask").hit.tolist() == [crosstask]


def test_a_step_is_found_in_any_of_its_segments_and_counts_once() -> None:
    segments, steps = [[0, 5], [20, 25], [20, 25], [40, 50]], [0, 0, 2, 2]
    for time_s, found in (([3, 9, 41], [True, True]), ([22, 9, 3], [True, False]), ([8, 9, 23], [False, True])):
        scored = step_hits(time_s, segments, steps, rule="crosstask")
        assert scored.present.tolist() == [True, False, True]
        assert scored.hit.tolist() == [found[0], False, found[1]]
    twice = step_hits([3, 0, 0], [[0, 5], [2, 9]], [0, 0], rule="challenge")
    assert recall([twice]) == 1


def test_a_segment_without_a_second_is_present_in_the_challenge_only() -> None:
    assert step_hits([5], [[5, 5]], [0], rule="crosstask").present.tolist() == [False]
    assert recall([step_hits([5], [[5, 5]], [0], rule="challenge")]) == 1
    assert step_hits([5], [[5, 5.1]], [0], rule="crosstask").present.tolist() == [True]


def test_a_video_may_have_no_segment() -> None:
    empty = step_hits([1, 2], [], [], rule="crosstask")
    assert (empty.present.tolist(), empty.hit.tolist()) == ([False, False], [False, False])
    assert math.isnan(recall([empty]))
    assert math.isnan(recall([]))


@pytest.mark.parametrize("steps", [[0, 2], [-1, 0]])
def test_segments_of_unknown_steps_are_refused(steps: list[int]) -> None:
    with pytest.raises(ValueError, match="the segments are of other steps than the 2 that have a time"):
        step_hits([1, 2], [[0, 1], [0, 1]], steps, rule="challenge")


def test_recall_is_over_all_steps_that_are_present() -> None:
    assert recall([hits(True, False, None), hits(None, None, False), hits(True, True, True)]) == 4 / 6


def test_average_recall_by_hand() -> None:
    videos = {
        ("tea", "a"): hits(True, True, True),
        ("tea", "b"): hits(False, None, None),
        ("bike", "c"): hits(True, False),
        ("door", "d"): hits(None),
    }
    found = average_recall(videos)
    assert found.tasks == ("bike", "tea")
    assert (found.recall.tolist(), found.n_steps.tolist()) == ([1 / 2, 3 / 4], [2, 4])
    assert found.mean == 5 / 8  # neither the mean over videos, 1/2, nor over steps, 4/6
    for nothing in ({}, {("door", "d"): hits(None)}):
        with pytest.raises(ValueError, match="there is no present step to find"):
            average_recall(nothing)


VIDEOS = {"tea": [f"t{number}" for number in range(40)], "bike": [f"b{number}" for number in range(30)]}
ALL = {(task, video) for task, videos in VIDEOS.items() for video in videos}


def test_subsets_are_drawn_by_task() -> None:
    drawn = random_subsets(VIDEOS, evaluated="drawn", seed=3)
    rest = random_subsets(VIDEOS, evaluated="rest", seed=3)
    assert len(drawn) == len(rest) == 20
    for one, other in zip(drawn, rest, strict=True):
        assert one | other == ALL
        assert not one & other
        assert sorted(task for task, _ in one) == ["bike"] * 30 + ["tea"] * 30
    assert len({*drawn}) == 20


def test_subsets_are_decided_by_the_seed_and_the_videos_alone() -> None:
    subsets = random_subsets(VIDEOS, evaluated="rest", seed=3, n=5, per_task=38)
    turned = {task: VIDEOS[task][::-1] for task in reversed(VIDEOS)}
    assert random_subsets(turned, evaluated="rest", seed=3, n=5, per_task=38) == subsets
    assert random_subsets(VIDEOS, evaluated="rest", seed=3, n=2, per_task=38) == subsets[:2]
    assert random_subsets(VIDEOS, evaluated="rest", seed=4, n=5, per_task=38) != subsets
    assert subsets[0] == {("tea", "t35"), ("tea", "t5")}


def test_the_mean_and_the_deviation_over_subsets() -> None:
    videos = {("tea", "a"): hits(True), ("tea", "b"): hits(False), ("bike", "c"): hits(True, True, True, False)}
    subsets = [{("tea", "a")}, {("tea", "b"), ("tea", "not computed")}, {*videos}]
    found = subset_recall(videos, subsets)
    assert found.recall.tolist() == [1, 0, 0.625]
    assert (found.mean, found.sd) == pytest.approx((mean([1, 0, 0.625]), stdev([1, 0, 0.625])))


def test_the_precision_of_crosstasks_segments_is_by_task() -> None:
    tasks = {0: ("tea", "none"), 1: ("tea", "none"), 10: ("bike", "none")}
    true = TrueSegments(["a", "a", "b", "c"], [0, 20, 5, 0], [10, 30, 9, 10], [0, 1, 0, 10])
    scores = [0.9, 0.7, 0.8, 0.6]
    predicted = PredictedSegments(["a", "a", "b", "c"], [0, 20, 50, 0], [10, 30, 59, 10], [0, 1, 0, 10], scores)
    for reading in ("official", "per_query"):
        found = article_grounding(true, predicted, tasks, reading=reading)
        assert found.activities == ("bike", "tea")
        assert found.ap.tolist() == [[1] * 5, [pytest.approx(5 / 9)] * 5]
        assert found.n_true.tolist() == [1, 3]

from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.metrics.moments import (
    covered,
    matched_scores,
    moment_hits,
    moment_iou,
    preprocess_moment_bounds,
    segmentation_scores,
)

Interval = tuple[float, float]
times = st.integers(0, 24).map(lambda halves: halves / 2)
"""Few, so that borders are shared, gaps are of exactly one second, and intervals are empty or reversed."""
intervals = st.tuples(times, times)
videos = st.lists(
    st.tuples(st.lists(intervals, min_size=1, max_size=5), st.lists(intervals, max_size=6)), min_size=1, max_size=4
)


def overlap(first: Interval, second: Interval) -> float:
    shared = max(0, min(first[1], second[1]) - max(first[0], second[0]))
    hull = max(first[1], second[1]) - min(first[0], second[0])
    return shared / (min(hull, first[1] - first[0] + second[1] - second[0]) + 1e-8)


def released_scores(listed: list[tuple[list[Interval], list[Interval]]], threshold: float) -> Any:
    """The released loop over videos, with its count of predictions that a video without any takes over."""
    recall, precision = [], []
    for true, predicted in listed:
        true_covered, predicted_covered = set(), set()
        for place, guess in enumerate(predicted):
            for number, step in enumerate(true):
                if overlap(guess, step) > threshold:
                    true_covered.add(number)
                    predicted_covered.add(place)
        precision.append(len(predicted_covered) / (place + 1))
        recall.append(len(true_covered) / len(true))
    return sum(recall) / len(listed), sum(precision) / len(listed)


def released_bounds(predicted: list[Interval], moment: Interval) -> list[list[float]]:
    """The released filter, suppression and filling, one after the other, with indices in the predicted order."""
    inside = [each for each in predicted if each[0] > moment[0] and each[1] < moment[1]]
    left, kept = [*range(len(inside))], []
    while left:
        start, end = inside[left.pop()]
        kept.append([start, end])
        left = [at for at in left if max(0, min(end, inside[at][1]) - max(start, inside[at][0]) + 1) == 0]
    if not kept:
        return [[*moment]]
    kept.sort(key=lambda each: each[0])
    filled = [[moment[0], kept[0][0]]]
    for place, each in enumerate(kept):
        filled.append(each)
        if place + 1 < len(kept):
            filled.append([each[1], kept[place + 1][0]])
    return [*filled, [kept[-1][1], moment[1]]]


@given(st.lists(intervals, min_size=1, max_size=6), st.lists(intervals, min_size=1, max_size=6))
def test_overlap_of_each_with_each(first: list[Interval], second: list[Interval]) -> None:
    found = moment_iou(np.array(first)[:, None], second)
    assert found.tolist() == [[pytest.approx(overlap(one, other), abs=1e-15) for other in second] for one in first]


@pytest.mark.parametrize("values", [[[1, 2, 3]], [1.0], [[0, float("nan")]], [[0, float("inf")]], 3.0])
def test_what_is_no_interval_is_refused(values: Any) -> None:
    with pytest.raises(ValueError, match="intervals must be finite starts and ends in seconds"):
        moment_iou(values, [[0, 1]])


def test_a_moment_is_hit_at_its_very_overlap_and_a_step_is_not_covered() -> None:
    true, predicted = [(0.0, 10.0)], [(0.0, 8.0)]
    exact = float(moment_iou(true, predicted)[0])
    above = float(np.nextafter(exact, 1))
    assert moment_hits(true, predicted, [exact, above]).tolist() == [[True, False]]
    below = float(np.nextafter(exact, 0))
    for side in covered(true, predicted, [exact, below]):
        assert side.tolist() == [[False, True]]


def test_an_exact_half_is_below_a_half() -> None:
    assert moment_hits([(0, 10)] * 3, [(0, 5), (0, 5.001), (0, 7)]).tolist() == [
        [False, False],
        [True, False],
        [True, False],
    ]


def test_one_to_one_a_step_counts_once() -> None:
    true, predicted = [(0, 4), (4, 8), (20, 24)], [(0, 4), (0, 4), (0, 8), (21, 24)]
    scores = matched_scores(true, predicted, [0.4, 0.9])
    assert scores.recall.tolist() == [1, pytest.approx(1 / 3)]
    assert scores.precision.tolist() == [0.75, 0.25]
    assert scores.f1.tolist() == [pytest.approx(6 / 7), pytest.approx(2 / 7)]


@given(st.lists(intervals, min_size=1, max_size=4), st.lists(intervals, max_size=4))
def test_one_to_one_is_the_most_pairs(true: list[Interval], predicted: list[Interval]) -> None:
    slots = [*predicted, *[None] * len(true)]
    most = max(
        sum(other is not None and overlap(one, other) > 0.3 for one, other in zip(true, chosen, strict=False))
        for chosen in permutations(slots, len(true))
    )
    scores = matched_scores(true, predicted, [0.3])
    assert scores.recall[0] == pytest.approx(most / len(true))
    assert scores.precision[0] == pytest.approx(most / max(1, len(predicted)))
    assert scores.f1[0] == pytest.approx(2 * most / (len(true) + len(predicted)))


def test_without_predictions_scores_are_0_and_without_truth_undefined() -> None:
    for score in (segmentation_scores, matched_scores):
        assert np.array(score([(0, 1)], [])).tolist() == [[0, 0]] * (2 if score is segmentation_scores else 3)
        with pytest.raises(ValueError, match="there is no true step to find"):
            score([], [(0, 1)])


@given(videos, st.sampled_from([0.25, 0.5, 0.7]))
def test_the_means_over_videos_are_those_of_the_release(listed: Any, threshold: float) -> None:
    """Also where a video without predictions is divided by the count of the one before."""
    if not listed[0][1]:
        with pytest.raises(UnboundLocalError):
            released_scores(listed, threshold)
        listed[0][1].append((0.0, 1.0))
    found = np.mean([segmentation_scores(*each, [threshold]) for each in listed], axis=0)
    assert found.ravel().tolist() == pytest.approx(released_scores(listed, threshold))


def test_true_steps_come_back_only_where_their_number_is_odd() -> None:
    edges = [2, 5, 9, 12, 20, 30]
    odd = [*pairwise(edges)]
    assert preprocess_moment_bounds(odd, (2, 30)).tolist() == [[*map(float, each)] for each in odd]
    even = odd[1:]
    assert preprocess_moment_bounds(even, (5, 30)).tolist() == [[5, 12], [12, 20], [20, 30]]
    short = [(2, 5), (5, 9), (9, 9.5), (9.5, 20), (20, 30)]
    assert preprocess_moment_bounds(short, (2, 30)).tolist() == [[2, 9.5], [9.5, 20], [20, 30]]


@given(st.lists(intervals, max_size=30))
def test_bounds_are_preprocessed_as_released_in_the_order_of_predictions(predicted: list[Interval]) -> None:
    assert preprocess_moment_bounds(predicted, (1.0, 10.5)).tolist() == released_bounds(predicted, (1.0, 10.5))

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from stepline.metrics.grounding import (
    TIOUS,
    GroundingScores,
    PredictedSegments,
    TrueSegments,
    article_grounding,
)

ARTICLES = {
    **dict.fromkeys((0, 1, 2), ("Make Tea", "none")),
    **dict.fromkeys((10, 11), ("Fix a Bike", "A")),
    **dict.fromkeys((12, 13), ("Fix a Bike", "B")),
}
True_ = tuple[str, float, float, int]
Guess = tuple[str, float, float, int, float]
TEA: list[True_] = [("v", 10, 20, 0), ("v", 30, 50, 1)]


def ground(true: Sequence[True_], guesses: Sequence[Guess], labels: Sequence[Any] | None = None) -> GroundingScores:
    columns: list[Any] = [[each[column] for each in true] for column in range(4)]
    guessed: list[Any] = [[each[column] for each in guesses] for column in range(5)]
    return article_grounding(TrueSegments(*columns, labels), PredictedSegments(*guessed), ARTICLES)


def plain(true: Sequence[True_], guesses: Sequence[Guess]) -> dict[str, list[float]]:
    """The evaluation of tie-free truth, written down for one activity and threshold after the other."""
    article = {video: ARTICLES[step] for video, _, _, step in true}
    found: dict[str, list[float]] = {}
    for activity in {name for name, _ in article.values()}:
        own = [each for each in true if ARTICLES[each[3]][0] == activity]
        counted = [
            each
            for each in sorted(guesses, key=lambda each: -each[4])
            if ARTICLES.get(each[3]) == article[each[0]]
            and article[each[0]][0] == activity
            and each[3] in {step for *_, step in true}
        ]
        for threshold in np.linspace(0.3, 0.7, 5):
            taken: set[int] = set()
            precision, recall, right = [], [], 0
            for place, guess in enumerate(counted, start=1):
                best, best_iou = None, -1.0
                for number, each in enumerate(own):
                    shared = max(0.0, min(guess[2], each[2]) - max(guess[1], each[1]))
                    iou = shared / (each[2] - each[1] + guess[2] - guess[1] - shared)
                    if each[0] == guess[0] and number not in taken and iou >= threshold and iou >= best_iou:
                        best, best_iou = number, iou
                if best is not None:
                    taken.add(best)
                    right += 1
                precision.append(right / place)
                recall.append(right / len(own))
            area, before = 0.0, 0.0
            for place, reached in enumerate(recall):
                area += (reached - before) * max(precision[place:])
                before = reached
            found.setdefault(activity, []).append(area)
    return found


@pytest.mark.parametrize(
    ("guesses", "expected"),
    [
        pytest.param([("v", 10, 20, 0, 0.9), ("v", 30, 50, 1, 0.8)], 1, id="perfect"),
        pytest.param([("v", 10, 20, 1, 0.9), ("v", 30, 50, 0, 0.8)], 1, id="swapped steps"),
        pytest.param([("v", 10, 20, 0, 0.9), ("v", 30, 50, 0, 0.8)], 1, id="one step for both"),
        pytest.param([("v", 10, 20, 0, 0.9), ("v", 10, 20, 1, 0.8), ("v", 30, 50, 1, 0.7)], 5 / 6, id="twice"),
        pytest.param([("v", 60, 70, 2, 0.9), ("v", 10, 20, 0, 0.8), ("v", 30, 50, 1, 0.7)], 1, id="an unused step"),
        pytest.param([("v", 60, 70, 0, 0.9), ("v", 10, 20, 0, 0.8), ("v", 30, 50, 1, 0.7)], 2 / 3, id="first false"),
        pytest.param([("v", 10, 20, 12, 0.9), ("v", 10, 20, 99, 0.9), ("v", 30, 50, 1, 0.7)], 0.5, id="other articles"),
        pytest.param([("v", 10, 20, 0, -9), ("v", 30, 50, 1, -8)], 1, id="negative scores"),
        pytest.param([("v", 10, 10, 0, 0.9), ("v", 30, 50, 1, 0.7)], 0.25, id="an empty one"),
        pytest.param([], 0, id="none"),
    ],
)
def test_average_precision_by_hand(guesses: list[Guess], expected: float) -> None:
    scores = ground(TEA, guesses)
    assert scores.activities == ("Make Tea",)
    assert scores.ap.tolist() == [[pytest.approx(expected)] * 5]
    assert scores.mean == pytest.approx(expected)


def test_an_overlap_that_equals_the_threshold_counts() -> None:
    assert TIOUS == (0.3, 0.39999999999999997, 0.5, 0.6, 0.7)
    for length, reached in ((3, 1), (4, 2), (5, 3), (6, 4), (7, 5), (2.99, 0)):
        scores = ground([("v", 0, 10, 0)], [("v", 0, length, 0, 1)])
        assert scores.ap[0].tolist() == [1.0] * reached + [0.0] * (5 - reached)


def test_a_segment_that_is_taken_at_a_threshold_is_free_at_another() -> None:
    scores = ground([("v", 0, 20, 0)], [("v", 0, 9, 0, 0.9), ("v", 0, 19, 0, 0.8), ("v", 0, 20, 0, 0.7)])
    assert scores.ap[0].tolist() == [1, 1, 0.5, 0.5, 0.5]


def test_equal_scores_stay_in_the_order_of_the_input() -> None:
    wrong, right = ("v", 60.0, 70.0, 0, 0.5), ("v", 10.0, 20.0, 0, 0.5)
    assert ground(TEA[:1], [right, wrong]).mean == 1
    assert ground(TEA[:1], [wrong, right]).mean == 0.5
    many = [wrong] * 20
    assert ground(TEA[:1], [*many, right, *many]).mean == pytest.approx(1 / 21)


def test_of_equal_overlaps_the_last_true_segment_is_taken() -> None:
    true: list[True_] = [("v", 10, 20, 0), ("v", 20, 30, 1)]
    between, first, last = ("v", 15.0, 25.0, 0, 0.9), ("v", 10.0, 20.0, 0, 0.8), ("v", 20.0, 30.0, 0, 0.8)
    assert ground(true, [between, first]).ap[0, 0] == 1
    assert ground(true, [between, last]).ap[0, 0] == 0.5
    assert ground(true[::-1], [between, last]).ap[0, 0] == 1


def test_predictions_of_another_variation_are_left_out() -> None:
    true: list[True_] = [("a", 0, 10, 10), ("b", 0, 10, 12)]
    scores = ground(true, [("a", 0, 10, 12, 0.9), ("a", 0, 10, 10, 0.8), ("b", 0, 10, 12, 0.7)])
    assert (scores.activities, scores.mean) == (("Fix a Bike",), 1)


def test_the_mean_is_over_activities_with_truth_also_without_predictions() -> None:
    scores = ground([*TEA, ("a", 0, 10, 10)], [("v", 10, 20, 0, 0.9), ("v", 30, 50, 1, 0.8)])
    assert scores.activities == ("Fix a Bike", "Make Tea")
    assert (scores.ap[:, 0].tolist(), scores.at.tolist(), scores.mean) == ([0, 1], [0.5] * 5, 0.5)


def test_repeats_and_short_segments_are_no_truth() -> None:
    guesses: list[Guess] = [("v", 10, 20, 0, 0.9)]
    repeat, beyond, other = ("v", 10.0005, 20.0005, 0), ("v", 10.002, 20.0, 0), ("v", 10.0, 20.0, 1)
    assert ground([TEA[0], repeat], guesses).mean == 1
    assert ground([TEA[0], beyond], guesses).mean == 0.5
    assert ground([TEA[0], other], guesses).mean == 0.5
    assert ground([TEA[0], ("v", 5, 5.0009, 1)], guesses).mean == 1
    assert ground([TEA[0], ("w", 5, 5, 1)], [("w", 10, 20, 0, 1), ("w", 10, 20, 1, 1), *guesses]).mean == 0.5
    assert ground([TEA[0], repeat], guesses, labels=["x", "y"]).mean == 0.5
    assert ground([TEA[0], other], guesses, labels=["x", "x"]).mean == 1


def test_a_reversed_prediction_as_long_as_the_truth_is_taken_for_it() -> None:
    assert ground(TEA[:1], [("v", 80, 70, 0, 0.9)]).mean == 1
    assert ground(TEA[:1], [("v", 80, 71, 0, 0.9)]).mean == 0


@pytest.mark.parametrize(
    ("true", "guesses", "reason"),
    [
        (TEA, [("w", 0, 1, 0, 1)], "there is a prediction of w, a video without a true segment"),
        (TEA, [("v", 0, 1, 0, math.nan)], "a prediction has the score NaN"),
        ([*TEA, ("v", 0, 1, 10)], [], "v has a true step, 10, that is of no article or of another than the first"),
        ([("a", 0, 1, 10), ("a", 0, 1, 12)], [], "a has a true step, 12, that is of no article or of another"),
        ([("v", 0, 1, 99)], [], "v has a true step, 99, that is of no article"),
        ([("v", 0, 0, 0)], [], "there is no true segment to find"),
        ([], [], "there is no true segment to find"),
    ],
)
def test_what_cannot_be_scored_is_refused(true: list[True_], guesses: list[Guess], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        ground(true, guesses)


@pytest.mark.parametrize("seed", range(8))
def test_random_predictions_score_as_the_plain_evaluation(seed: int) -> None:
    random = np.random.default_rng(seed)
    true: list[True_] = []
    for number in range(6):
        steps = [step for step in ARTICLES if ARTICLES[step] == list(ARTICLES.values())[3 * number % len(ARTICLES)]]
        for _ in range(random.integers(1, 5)):
            start_s, length_s = random.uniform(0, 60), random.uniform(2, 20)
            true.append((f"v{number}", start_s, start_s + length_s, int(random.choice(steps))))
    guesses: list[Guess] = []
    for _ in range(80):
        video, start_s, end_s, _ = true[random.integers(len(true))]
        shift = random.normal(0, 4, 2)
        step = int(random.choice([*ARTICLES, 99]))
        guesses.append((video, start_s + shift[0], max(start_s + shift[0], end_s + shift[1]), step, random.random()))
    scores = ground(true, guesses)
    expected = plain(true, guesses)
    assert {*scores.activities} == {*expected}
    for activity, ap in zip(scores.activities, scores.ap, strict=True):
        assert ap.tolist() == pytest.approx(expected[activity], abs=1e-12)
    assert 0 < scores.mean < 1

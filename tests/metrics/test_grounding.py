import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stepline.metrics.grounding import (
    TIOUS,
    Dropped,
    GroundingScores,
    MatchType,
    PredictedSegments,
    Reading,
    TrueSegments,
    article_grounding,
    match_type_grounding,
    reversed_segments,
)

ARTICLES = {
    **dict.fromkeys((0, 1, 2), ("Make Tea", "none")),
    **dict.fromkeys((10, 11), ("Fix a Bike", "A")),
    **dict.fromkeys((12, 13), ("Fix a Bike", "B")),
    20: ("Fold a Napkin", "none"),
}
True_ = tuple[str, float, float, int]
Guess = tuple[str, float, float, int, float]
TEA: list[True_] = [("v", 10, 20, 0), ("v", 30, 50, 1)]


def columns(true: Sequence[True_], guesses: Sequence[Guess], **more: Any) -> tuple[TrueSegments, PredictedSegments]:
    of_true: list[Any] = [[each[column] for each in true] for column in range(4)]
    guessed: list[Any] = [[each[column] for each in guesses] for column in range(5)]
    return TrueSegments(*of_true)._replace(**more), PredictedSegments(*guessed)


def ground(
    true: Sequence[True_], guesses: Sequence[Guess], labels: Sequence[Any] | None = None, **options: Any
) -> GroundingScores:
    return article_grounding(*columns(true, guesses, label=labels), ARTICLES, **options)


def of_kind(
    kind: MatchType, matches: Sequence[tuple[True_, bool]], guesses: Sequence[Guess], **options: Any
) -> GroundingScores:
    true, full = zip(*matches, strict=True)
    return match_type_grounding(*columns(true, guesses, full=full), ARTICLES, kind, **options)


def plain(true: Sequence[True_], guesses: Sequence[Guess], reading: Reading) -> dict[str, tuple[list[float], int, int]]:
    """The evaluation, one activity and threshold after the other: average precisions, true and scored segments."""
    true = [each for place, each in enumerate(true) if each not in true[:place]]
    article = {video: ARTICLES[step] for video, _, _, step in true}
    found: dict[str, tuple[list[float], int, int]] = {}
    for activity in {name for name, _ in article.values()}:
        own = [each for each in true if ARTICLES[each[3]][0] == activity]
        counted = [
            each
            for each in sorted(guesses, key=lambda each: -each[4])
            if ARTICLES.get(each[3]) == article[each[0]]
            and article[each[0]][0] == activity
            and (reading == "per_query" or each[3] in {step for *_, step in true})
        ]
        precisions = []
        for threshold in np.linspace(0.3, 0.7, 5):
            taken: set[int] = set()
            precision, recall, right = [], [], 0
            for place, guess in enumerate(counted, start=1):
                best, best_iou = None, -1.0
                for number, each in enumerate(own):
                    shared = max(0.0, min(guess[2], each[2]) - max(guess[1], each[1]))
                    iou = shared / (each[2] - each[1] + guess[2] - guess[1] - shared)
                    same = each[0] == guess[0] and (reading == "official" or each[3] == guess[3])
                    if same and number not in taken and iou >= threshold and iou >= best_iou:
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
            precisions.append(area)
        found[activity] = precisions, len(own), len(counted)
    return found


def check_plain(true: Sequence[True_], guesses: Sequence[Guess], reading: Reading) -> GroundingScores:
    """Compare the scores with the plain evaluation's and return them."""
    scores = ground(true, guesses, reading=reading)
    expected = plain(true, guesses, reading)
    assert {*scores.activities} == {*expected}
    for place, activity in enumerate(scores.activities):
        ap, n_true, n_predicted = expected[activity]
        assert scores.ap[place].tolist() == pytest.approx(ap, abs=1e-12)
        assert (scores.n_true[place], scores.n_predicted[place]) == (n_true, n_predicted)
    assert scores.n_predicted.sum() + sum(scores.dropped) == len(guesses)
    return scores


def test_an_overlap_that_equals_the_threshold_counts() -> None:
    assert TIOUS == (0.3, 0.39999999999999997, 0.5, 0.6, 0.7)
    for length, reached in ((3, 1), (4, 2), (5, 3), (6, 4), (7, 5), (2.99, 0)):
        scores = ground([("v", 0, 10, 0)], [("v", 0, length, 0, 1)])
        assert scores.ap[0].tolist() == [1.0] * reached + [0.0] * (5 - reached)


def test_equal_scores_are_visited_in_the_order_of_the_input() -> None:
    right, wrong = ("v", 10, 20, 0, 0.5), ("v", 100, 120, 0, 0.5)
    assert [ground(TEA, order).mean for order in ([right, wrong], [wrong, right])] == [0.5, 0.25]


def test_repeats_and_short_segments_are_no_truth() -> None:
    guesses: list[Guess] = [("v", 10, 20, 0, 0.9)]
    repeat, beyond, other = ("v", 10.0005, 20.0005, 0), ("v", 10.002, 20.0, 0), ("v", 10.0, 20.0, 1)
    assert ground([TEA[0], repeat], guesses).mean == 1
    assert ground([TEA[0], beyond], guesses).mean == 0.5
    assert ground([TEA[0], other], guesses).mean == 0.5
    assert ground([TEA[0], ("v", 10, 20.002, 0)], guesses).mean == 0.5
    assert ground([TEA[0], ("v", 30, 50, 0), ("v", 30, 50.0005, 0)], guesses).mean == 0.5
    assert ground([("v", 0, 1, 0), ("v", 0.001, 1, 0)], [("v", 0, 1, 0, 1)]).mean == 1
    assert ground([TEA[0], ("v", 0, 0.001, 1)], guesses).mean == 0.5
    assert ground([TEA[0], ("v", 5, 5.0009, 1)], guesses).mean == 1
    assert ground([TEA[0], ("w", 5, 5, 1)], [("w", 10, 20, 0, 1), ("w", 10, 20, 1, 1), *guesses]).mean == 0.5
    assert ground([TEA[0], repeat], guesses, labels=["x", "y"]).mean == 0.5
    assert ground([TEA[0], other], guesses, labels=["x", "x"]).mean == 1


def test_a_segment_repeats_those_that_are_kept_alone() -> None:
    """Each is within 1 ms of the one before; the third is not within 1 ms of the first."""
    true: list[True_] = [("v", 10 + shift, 20 + shift, 0) for shift in (0, 0.0008, 0.0016)]
    assert ground(true, []).n_true.tolist() == [2]


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


def test_of_each_dropped_prediction_the_reason_is_counted() -> None:
    true: list[True_] = [*TEA, ("a", 0, 10, 10), ("b", 0, 0.0001, 13), ("c", 0, 0.0001, 20)]
    guesses: list[Guess] = [
        *[("v", 0, 1, 10, 0.5), ("v", 0, 1, 99, 0.5), ("a", 0, 1, 12, 0.5)],  # of other articles
        *[("v", 0, 1, 2, 0.5), ("a", 0, 1, 11, 0.5), ("b", 0, 1, 12, 0.5), ("b", 0, 1, 13, 0.5)],  # of unused steps
        ("c", 0, 1, 20, 0.5),  # of an activity with nothing to find
        *[("v", 0, 1, 0, 0.5), ("v", 0, 1, 1, 0.5), ("a", 0, 1, 10, 0.5)],
    ]
    official, per_query = ground(true, guesses), ground(true, guesses, reading="per_query")
    assert official.dropped == Dropped(other_article=3, other_kind=0, unused_step=5, no_truth=0)
    assert per_query.dropped == Dropped(other_article=3, other_kind=0, unused_step=0, no_truth=1)
    assert (official.activities, official.n_true.tolist()) == (("Fix a Bike", "Make Tea"), [1, 2])
    assert (official.n_predicted.tolist(), per_query.n_predicted.tolist()) == ([1, 2], [4, 3])
    assert per_query.n_true.tolist() == [1, 2]


def test_reversed_predictions_are_found() -> None:
    start_s, end_s = [0, 20, 5, math.nan, 1, math.inf], [10, 10, 5, 7, math.nan, math.inf]
    predicted = PredictedSegments(["v"] * 6, start_s, end_s, [0] * 6, [0.5] * 6)
    assert reversed_segments(predicted).tolist() == [1, 3, 4, 5]
    assert reversed_segments(PredictedSegments([], [], [], [], [])).tolist() == []


def test_a_prediction_whose_overlap_is_no_number_is_true_as_released() -> None:
    for reading in ("official", "per_query"):
        assert ground(TEA[:1], [("v", 20, 10, 0, 0.9)], reading=reading).mean == 1
        assert ground(TEA[:1], [("v", 21, 10, 0, 0.9)], reading=reading).mean == 0
    same: list[True_] = [("v", 10, 20, 0), ("v", 30, 40, 0)]
    assert ground(same, [("v", 60, 50, 0, 0.9), ("v", 10, 20, 0, 0.8)]).mean == 1
    assert ground(same, [("v", 60, 50, 0, 0.9), ("v", 30, 40, 0, 0.8)]).mean == 0.5


FULL, PARTIAL = True, False
MATCHES: list[tuple[True_, bool]] = [
    (("v", 10, 20, 0), FULL),
    (("v", 30, 50, 1), FULL),
    (("v", 60, 70, 1), PARTIAL),
    (("w", 10, 20, 0), PARTIAL),
    (("a", 10, 20, 10), PARTIAL),
]


def test_full_and_partial_matches_by_hand() -> None:
    guesses: list[Guess] = [
        ("v", 30, 50, 1, 0.9),  # of a query of both kinds
        ("v", 0, 5, 2, 0.8),  # of one without a segment
        ("w", 10, 20, 0, 0.7),  # of partial matches only
        ("v", 10, 20, 0, 0.6),  # of full matches only
        ("a", 10, 20, 10, 0.5),
    ]
    full = of_kind("full", MATCHES, guesses)
    assert (full.activities, full.n_true.tolist(), full.n_predicted.tolist()) == (("Make Tea",), [1], [2])
    assert full.ap.tolist() == [[0.5] * 5]
    assert full.dropped == Dropped(other_article=0, other_kind=3, unused_step=0, no_truth=0)
    partial = of_kind("partial", MATCHES, guesses)
    assert partial.activities == ("Fix a Bike", "Make Tea")
    assert (partial.n_true.tolist(), partial.n_predicted.tolist()) == ([1, 1], [1, 2])
    assert (partial.ap[:, 0].tolist(), partial.mean) == ([1, 0.5], 0.75)
    assert partial.dropped == Dropped(other_article=0, other_kind=2, unused_step=0, no_truth=0)
    assert of_kind("full", MATCHES, [*guesses, ("a", 0, 5, 11, 0.9)]).dropped.no_truth == 1


def test_a_segment_that_is_no_truth_is_no_match_of_another_kind() -> None:
    matches = [(("v", 10, 20, 0), True), (("v", 40, 40.0005, 0), False)]
    found = of_kind("full", matches, [("v", 10, 20, 0, 0.5)])
    assert (found.mean, found.n_true.tolist(), found.dropped.other_kind) == (1, [1], 0)


def test_full_matches_in_the_official_reading() -> None:
    swapped: list[Guess] = [("v", 0, 5, 2, 0.9), ("v", 10, 20, 2, 0.8), ("v", 10, 20, 0, 0.7)]
    scores = of_kind("full", MATCHES, swapped, reading="official")
    assert (scores.mean, scores.dropped.unused_step) == (1, 2)
    assert of_kind("full", MATCHES, swapped).mean == pytest.approx(1 / 3)


def test_match_types_that_cannot_be_scored_are_refused() -> None:
    with pytest.raises(ValueError, match="there is no true segment to find"):
        of_kind("full", MATCHES[2:], [])
    with pytest.raises(ValueError, match="the true segments do not say which of them are full matches"):
        match_type_grounding(
            TrueSegments(["v"], [0], [1], [0]), PredictedSegments([], [], [], [], []), ARTICLES, "full"
        )


VIDEOS = {"t": (0, 1, 2), "u": (0, 1, 2), "a": (10, 11), "b": (12, 13)}
"""Four videos and the steps of their articles; in whole seconds, so that scores, IoUs and segments are often equal."""
SECONDS = st.tuples(st.integers(0, 6), st.integers(1, 6))


@st.composite
def truth(draw: st.DrawFn) -> list[True_]:
    found: list[True_] = []
    for video in draw(st.sets(st.sampled_from([*VIDEOS]), min_size=1)):
        for start_s, length_s in draw(st.lists(SECONDS, min_size=1, max_size=4)):
            found.append((video, start_s, start_s + length_s, draw(st.sampled_from(VIDEOS[video]))))
    return found


@settings(max_examples=150, deadline=None)
@given(
    true=truth(),
    drawn=st.lists(
        st.tuples(st.integers(0, 3), SECONDS, st.sampled_from([*ARTICLES, 99]), st.integers(0, 3)), max_size=12
    ),
    reading=st.sampled_from(["official", "per_query"]),
)
def test_whole_seconds_score_as_the_plain_evaluation(
    true: list[True_], drawn: list[tuple[int, tuple[int, int], int, int]], reading: Reading
) -> None:
    videos = sorted({video for video, *_ in true})
    guesses: list[Guess] = [
        (videos[video % len(videos)], start_s, start_s + length_s, step, score / 3)
        for video, (start_s, length_s), step, score in drawn
    ]
    check_plain(true, guesses, reading)


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
    official, per_query = check_plain(true, guesses, "official"), check_plain(true, guesses, "per_query")
    assert 0 < per_query.mean < official.mean < 1

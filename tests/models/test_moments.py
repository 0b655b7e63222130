"""Moments and steps without training, against what the definitions give by hand and by a slow search."""

import numpy as np
import pytest

from stepline.models.moments import above, around, pooled, subset_rows, topic_boundaries, uniform_rows


def test_around_is_clipped_to_the_video_and_takes_the_first_of_equal_peaks() -> None:
    scores = np.zeros(32)
    scores[[12, 20]] = 1
    assert around(scores) == (4, 20)
    assert around(scores, reach=0) == (12, 12)
    assert around(-scores) == (0, 8)
    assert around(np.arange(32.0)) == (23, 31)
    assert around(np.ones(1)) == (0, 0)


def test_above_is_the_run_around_the_peak() -> None:
    scores = np.array([0.9, 0.2, 0.9, 1.0, 0.95, 0.2, 0.99])
    assert above(scores, 0.1) == (2, 4)
    assert above(scores, 0.05) == (3, 4)
    assert above(scores, 0) == (3, 3)
    assert above(scores, 1) == (0, 6)
    assert above(np.array([0.0, 1, 0, 1]), 0.5) == (1, 1)
    assert above(np.array([0.5], np.float32), 0.1) == (0, 0)


def test_above_is_that_of_a_slow_search() -> None:
    random = np.random.default_rng(0)
    for _ in range(50):
        scores = random.integers(0, 10, 12) / 10
        first = last = int(scores.argmax())
        while first > 0 and scores[first - 1] >= scores.max() - 0.2:
            first -= 1
        while last < 11 and scores[last + 1] >= scores.max() - 0.2:
            last += 1
        assert above(scores, 0.2) == (first, last)


def test_rows_are_those_of_hirests_baselines() -> None:
    assert subset_rows(1).tolist() == [0]
    assert subset_rows(4).tolist() == [0, 10, 20, 31]
    assert subset_rows(32).tolist() == list(range(32))
    assert uniform_rows(207).tolist()[:4] == [0, 6, 13, 19]
    assert uniform_rows(207).tolist()[-1] == 206
    assert uniform_rows(2, 4).tolist() == [0, 0, 0, 1]
    assert uniform_rows(1).tolist() == [0] * 32


def test_a_pooled_vector_is_the_mean_of_the_stored_rows() -> None:
    rows = np.array([(3, 0), (0, 7), (1, 0), (0, 4)], np.float16)
    assert pooled(rows, 2, "dot product").tolist() == [1.5, 2]
    assert pooled(rows, 2, "cosine") == pytest.approx([0.6, 0.8])
    assert pooled(rows, 1, "cosine").tolist() == [1, 0]
    assert pooled(np.array([[1], [1 + 2**-10]], np.float16), 2, "dot product").tolist() == [1 + 2**-11]
    assert pooled(np.zeros((4, 2)), 4, "cosine").tolist() == [0, 0]


TOPICS = np.eye(3)[[0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]]
STARTS = np.arange(12) * 10.0


def test_steps_meet_where_what_is_said_changes() -> None:
    assert topic_boundaries(TOPICS, STARTS, 0, 120, 3) == [40, 80]
    assert topic_boundaries(TOPICS, STARTS, 0, 120, 2) == [40]
    assert topic_boundaries(TOPICS, STARTS, 0, 120, 1) == []
    assert topic_boundaries(TOPICS, STARTS, 45, 100, 2) == [80]
    assert topic_boundaries(TOPICS, STARTS, 200, 220, 4) == []
    assert topic_boundaries(TOPICS[:0], STARTS[:0], 0, 9, 4) == []


def test_steps_are_five_seconds_or_longer() -> None:
    assert topic_boundaries(TOPICS, STARTS / 8, 0, 15, 3) == [5, 10]
    assert topic_boundaries(TOPICS, STARTS / 10, 0, 12, 3) == [5]
    assert topic_boundaries(TOPICS, STARTS, 36, 84, 5) == [50, 60, 70]


def test_a_step_begins_later_than_the_sentence_before_it() -> None:
    topics = np.eye(2)[[0, 1, 1, 1]]
    assert topic_boundaries(topics, np.array([10.0, 11, 30, 31]), 0, 60, 2) == [11]
    assert topic_boundaries(topics, np.array([10.0, 10, 30, 31]), 0, 60, 2) == [30]


def test_cosines_that_differ_by_rounding_are_a_tie() -> None:
    """The second is lower by 1e-8."""
    vectors = np.array([(1, 0), (0, 1), (1, -1e-8)])
    assert topic_boundaries(vectors, STARTS[:3], 0, 60, 2) == [10]
    assert topic_boundaries(vectors * (1, 1e4), STARTS[:3], 0, 60, 2) == [20]


def test_a_sentence_at_the_end_is_not_of_the_moment() -> None:
    vectors = np.array([(1, 0), (0, 1), (1, -0.2), (-2, 1)])
    for n in (3, 4):
        assert topic_boundaries(vectors[:n], STARTS[:n], 0, 30, 2) == [20]


def test_words_that_say_nothing_are_unlike_all_others() -> None:
    assert topic_boundaries(np.array([(0, 0), (1, 0), (1, 1)]), STARTS[:3], 0, 60, 2) == [10]


def test_three_sentences_on_each_side_are_compared() -> None:
    random = np.random.default_rng(3)
    vectors, starts = random.normal(size=(20, 5)), np.cumsum(random.uniform(5, 9, 20))
    cosines = {}
    for place in range(1, 20):
        one, two = vectors[max(place - 3, 0) : place].mean(axis=0), vectors[place : place + 3].mean(axis=0)
        cosines[starts[place]] = one @ two / np.linalg.norm(one) / np.linalg.norm(two)
    expected = sorted(sorted(cosines, key=lambda at: cosines[at])[:4])
    assert topic_boundaries(vectors, starts, 0, 300, 5) == expected

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.metrics.retrieval import first_rank, rank, recall_at

IDS = st.text("-_09AZaz", min_size=1, max_size=3)


def test_the_highest_score_comes_first_and_of_equal_ones_the_last_id() -> None:
    videos = ["a", "_", "Z", "b", "-", "9", "z"]
    assert rank(videos, [0.5] * 7) == ["z", "b", "a", "_", "Z", "9", "-"]
    assert rank(videos, [0.5, -1, 0.5, 0.7, -2, math.inf, 0.5]) == ["9", "b", "z", "a", "Z", "_", "-"]
    assert rank([], []) == []


@given(st.lists(st.tuples(IDS, st.sampled_from([-1.5, -0.0, 0.0, 0.25])), max_size=12), st.sets(IDS))
def test_it_is_the_order_and_the_hit_of_the_release(scored: list[tuple[str, float]], answers: set[str]) -> None:
    videos, scores = [video for video, _ in scored], [score for _, score in scored]
    released = [video for _, video in sorted(zip(scores, videos, strict=True))][::-1]
    assert rank(videos, scores) == released
    for k in (1, 2, 5):
        hit = False
        for video in released[:k]:
            if video in answers:
                hit = True
                break
        assert recall_at(k, [first_rank(released, answers)]) == hit


def test_one_of_several_answers_is_enough() -> None:
    assert first_rank(["a", "b", "c"], {"c", "b"}) == 2
    assert first_rank(["a", "b", "c"], {"d"}) == math.inf
    ranks = np.array([1, 2, 5, 6, math.inf])
    assert [recall_at(k, ranks) for k in (1, 5, 10)] == [0.2, 0.6, 0.8]


@pytest.mark.parametrize("scores", [[1.0], [1.0, math.nan], [[1.0, 2.0]]])
def test_scores_that_cannot_be_ranked_are_refused(scores: list[float]) -> None:
    with pytest.raises(ValueError, match="2 videos need as many scores, none of them NaN"):
        rank(["a", "b"], scores)


def test_recall_of_no_queries_is_refused() -> None:
    with pytest.raises(ValueError, match="recall of no queries is undefined"):
        recall_at(1, [])

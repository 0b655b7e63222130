import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from stepline.metrics.threshold import best_threshold

samples = st.lists(
    st.tuples(st.integers(0, 3), st.integers(1, 3), st.integers(0, 8), st.integers(0, 1)), min_size=1, max_size=30
)


def by_trying_all(labels: np.ndarray, best: np.ndarray, scores: np.ndarray, groups: np.ndarray, f1: str) -> list:
    tried = []
    for threshold in [*sorted(set(scores.tolist())), np.inf]:
        predicted = np.where(scores < threshold, 0, best)
        if f1 == "binary":
            value = f1_score(labels == 0, predicted == 0, zero_division=0)
        else:
            of_groups = []
            for group in np.unique(groups):
                chosen = groups == group
                of_groups.append(f1_score(labels[chosen], predicted[chosen], average="macro", zero_division=0))
            value = np.mean(of_groups)
        tried.append((threshold, float(value)))
    return tried


@pytest.mark.parametrize("f1", ["binary", "macro"])
@given(samples)
def test_no_threshold_has_a_greater_f1_and_none_below_it_as_great(f1: str, drawn: list[tuple[int, ...]]) -> None:
    labels, best, scores, groups = (np.array(column) for column in zip(*drawn, strict=True))
    threshold, value = best_threshold(labels, best, scores / 8, f1=f1, groups=groups)  # type: ignore[arg-type]
    tried = by_trying_all(labels, best, scores / 8, groups, f1)
    assert value == pytest.approx(max(v for _, v in tried))
    assert dict(tried)[threshold] == pytest.approx(value)
    assert all(v < value - 1e-9 for t, v in tried if t < threshold)


def test_the_smallest_of_equally_good_thresholds_wins() -> None:
    labels, best, scores = np.array([0, 1]), np.array([1, 1]), np.array([0.2, 0.8])
    groups = np.zeros(2, np.int64)
    assert best_threshold(labels, best, scores, f1="binary", groups=groups) == (0.8, 1.0)
    no_irrelevant = best_threshold(np.array([1, 1]), best, scores, f1="binary", groups=groups)
    assert no_irrelevant == (0.2, 0.0)


def test_macro_f1_that_differ_by_rounding_are_a_tie() -> None:
    """Both thresholds have 13/30, whose floats differ in the last digit."""
    labels, best = np.array([1, 0, 3, 0, 2, 3, 2, 3]), np.array([1, 2, 2, 2, 3, 1, 3, 3])
    scores, groups = np.array([0.75, 0.0, 0.125, 0.875, 0.375, 0.25, 0.625, 0.5]), np.zeros(8, np.int64)
    assert best_threshold(labels, best, scores, f1="macro", groups=groups) == (0.375, pytest.approx(13 / 30))


def test_all_can_be_irrelevant() -> None:
    zeros = np.zeros(3, np.int64)
    threshold, value = best_threshold(zeros, np.ones(3, np.int64), np.array([0.1, 0.5, 0.5]), f1="binary", groups=zeros)
    assert (threshold, value) == (np.inf, 1.0)


def test_the_two_f1_choose_differently() -> None:
    """Binary F1 does not see that a step is confused with another; macro F1 does."""
    labels, best = np.array([2, 0, 0, 0, 0, 2, 2, 1]), np.array([1, 1, 1, 1, 2, 1, 1, 1])
    scores, groups = np.array([0.7, 0.1, 0.4, 0.5, 0.4, 0.6, 0.7, 1.0]), np.zeros(8, np.int64)
    assert best_threshold(labels, best, scores, f1="binary", groups=groups)[0] == 0.6
    assert best_threshold(labels, best, scores, f1="macro", groups=groups)[0] == 1.0

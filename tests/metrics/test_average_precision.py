from itertools import pairwise, permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from stepline.metrics.average_precision import average_precision


def by_definition(scores: list[float], positives: list[bool], *, interpolated: bool) -> float:
    """The area under the curve of precision over recall, rank by rank.

    The curve starts at (0, 0) and ends at (1, 0); with interpolation each precision is the best at that recall or
    beyond. Of equal scores, negatives are ranked first.
    """
    ranked = [hit for _, hit in sorted(zip(scores, positives, strict=True), key=lambda pair: (-pair[0], pair[1]))]
    recall, precision = [0.0], [0.0]
    for n in range(1, len(ranked) + 1):
        recall.append(sum(ranked[:n]) / sum(ranked))
        precision.append(sum(ranked[:n]) / n)
    recall.append(1.0)
    precision.append(0.0)
    area = 0.0
    for i in range(1, len(recall)):
        height = max(precision[i:]) if interpolated else precision[i]
        area += (recall[i] - recall[i - 1]) * height
    return area


rankings = st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=40)


@given(rankings, st.booleans())
def test_equals_the_definition_with_many_ties(ranking: list[tuple[int, bool]], interpolated: bool) -> None:
    scores, positives = [float(score) for score, _ in ranking], [hit for _, hit in ranking]
    value = average_precision(np.array(scores), np.array(positives), interpolated=interpolated)
    if any(positives):
        assert value == pytest.approx(by_definition(scores, positives, interpolated=interpolated), abs=1e-12)
    else:
        assert np.isnan(value)


@given(rankings.filter(lambda ranking: sum(hit for _, hit in ranking) > 0))
def test_ties_are_ranked_as_badly_as_they_can_be(ranking: list[tuple[int, bool]]) -> None:
    """No order of equal scores is worse."""
    ranking = ranking[:5]
    scores, positives = np.array([s for s, _ in ranking], float), np.array([hit for _, hit in ranking])
    if not positives.any():
        return
    for interpolated in (True, False):
        worst = 1.0
        for order in permutations(range(len(ranking))):
            if all(scores[a] >= scores[b] for a, b in pairwise(order)):
                unequal = -np.argsort(np.array(order)).astype(float)
                worst = min(worst, average_precision(unequal, positives, interpolated=interpolated))
        assert average_precision(scores, positives, interpolated=interpolated) == pytest.approx(worst)


def test_uninterpolated_is_scikit_learns_where_no_scores_are_equal() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores, positives = rng.permutation(100).astype(float), rng.random(100) < 0.2
        value = average_precision(scores, positives, interpolated=False)
        assert value == pytest.approx(average_precision_score(positives, scores))
        assert average_precision(scores, positives, interpolated=True) > value


@pytest.mark.parametrize("interpolated", [True, False])
def test_perfect_worst_and_constant_rankings(interpolated: bool) -> None:
    positives = np.arange(10) < 3

    def value(scores: np.ndarray) -> float:
        return average_precision(scores, positives, interpolated=interpolated)

    assert value(-np.arange(10.0)) == 1
    worst = [1 / 8, 2 / 9, 3 / 10]
    expected = 0.3 if interpolated else np.mean(worst)
    assert value(np.arange(10.0)) == pytest.approx(expected)
    assert value(np.zeros(10)) == pytest.approx(expected)
    assert value(positives.astype(float)) == 1

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from stepline.metrics import plan_scores, window_scores
from stepline.metrics.plans import GUESS, NO_ACTION

POOL = 4
shapes = st.tuples(st.integers(1, 8), st.integers(1, 5))


@st.composite
def plans(draw: st.DrawFn, least: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    shape = draw(shapes)
    pred = draw(arrays(np.int64, shape, elements=st.integers(least, POOL - 1)))
    return pred, draw(arrays(np.int64, shape, elements=st.integers(0, POOL - 1)))


def overlap(pred: Any, true: Any) -> float:
    """Return the IoU of two sets."""
    return len(set(pred) & set(true)) / len(set(pred) | set(true))


@settings(max_examples=30)
@given(plans(least=NO_ACTION))
def test_each_window_is_scored_as_its_sets_say(rows: tuple[NDArray[np.int64], NDArray[np.int64]]) -> None:
    pred, true = rows
    scores = window_scores(pred, true)
    assert scores.sr.tolist() == [float(p == t) for p, t in zip(pred.tolist(), true.tolist(), strict=True)]
    assert scores.acc == pytest.approx((pred == true).mean(axis=1))
    named = [set(row) - {NO_ACTION} for row in pred.tolist()]
    assert scores.iou == pytest.approx([overlap(p, t) for p, t in zip(named, true.tolist(), strict=True)])
    assert plan_scores(pred, true) == pytest.approx((scores.sr.mean(), scores.acc.mean(), scores.iou.mean()))


@settings(max_examples=30)
@given(plans(), st.permutations(range(POOL)), st.randoms(use_true_random=False))
def test_the_names_of_actions_and_the_order_of_windows_do_not_matter(
    rows: tuple[NDArray[np.int64], NDArray[np.int64]], names: list[int], random: Any
) -> None:
    pred, true = rows
    order = list(range(len(pred)))
    random.shuffle(order)
    renamed = plan_scores(np.array(names)[pred][order], np.array(names)[true][order])
    assert renamed == pytest.approx(plan_scores(pred, true))


@settings(max_examples=30)
@given(plans(), st.integers(1, 10))
def test_a_batch_has_one_iou_that_counts_as_often_as_it_has_windows(
    rows: tuple[NDArray[np.int64], NDArray[np.int64]], size: int
) -> None:
    pred, true = rows
    starts = range(0, len(pred), size)
    parts = [(pred[at : at + size], true[at : at + size]) for at in starts]
    expected = sum(len(p) * overlap(p.ravel(), t.ravel()) for p, t in parts) / len(pred)
    found = plan_scores(pred, true, batch_size=size)
    assert found.miou == pytest.approx(expected)
    assert found[:2] == plan_scores(pred, true)[:2]
    assert plan_scores(pred, true, batch_size=1) == pytest.approx(plan_scores(pred, true))


def test_an_action_that_is_none_is_wrong_and_in_no_set() -> None:
    nothing, half = window_scores([[NO_ACTION] * 2, [NO_ACTION, 3]], [[0, 1], [0, 3]]), 1 / 2
    assert nothing.sr.tolist() == [0, 0]
    assert nothing.acc.tolist() == [0, half]
    assert nothing.iou.tolist() == [0, half]
    assert plan_scores([[NO_ACTION] * 2, [NO_ACTION, 3]], [[0, 1], [0, 3]], batch_size=2).miou == pytest.approx(1 / 3)


@settings(max_examples=30)
@given(plans(least=GUESS), st.integers(POOL, POOL + 1))
def test_guesses_have_the_mean_score_of_all_that_may_be_drawn(
    rows: tuple[NDArray[np.int64], NDArray[np.int64]], n_actions: int
) -> None:
    pred, true = rows[0][:2], rows[1][:2]
    scores = window_scores(pred, true, n_actions=n_actions)
    for index, (row, wanted) in enumerate(zip(pred, true, strict=True)):
        drawn = np.array(list(itertools.product(range(n_actions), repeat=int((row == GUESS).sum()))))
        every = np.tile(row, (len(drawn), 1))
        every[:, row == GUESS] = drawn
        expected = [score.mean() for score in window_scores(every, np.tile(wanted, (len(every), 1)))]
        assert [score[index] for score in scores] == pytest.approx(expected)


def test_many_windows_and_long_ones_are_scored() -> None:
    rng = np.random.default_rng(0)
    pred, true = rng.integers(0, 55, (2, 100_000, 6))
    assert plan_scores(pred, true, batch_size=32).acc == pytest.approx(1 / 55, abs=1e-3)
    assert window_scores([[GUESS] * 300], [range(300)], n_actions=300).acc == pytest.approx(1 / 300)


@pytest.mark.parametrize(
    ("pred", "true", "message"),
    [
        ([[0, 1]], [[0, 1, 2]], r"pred is \(1, 2\) and true \(1, 3\)"),
        ([0, 1], [0, 1], r"pred is \(2,\) of int64, not \(N, T\) integers"),
        ([], [], r"pred is \(0,\)"),
        ([[]], [[]], r"pred is \(1, 0\)"),
        ([[0.0]], [[0]], "of float64"),
        ([[0]], [[True]], "true is .* of bool"),
        ([[0, 1], [0]], [[0, 1], [0, 1]], "pred is not rows of one length"),
        ([[0]], [[NO_ACTION]], "true has ids from -1 to -1: they must be at least 0"),
        ([[-3]], [[0]], "pred has ids from -3 to -3: they must be at least -2"),
        ([[GUESS]], [[0]], "give window_scores n_actions"),
    ],
)
def test_what_is_no_plan_is_one_clear_line(pred: Any, true: Any, message: str) -> None:
    for scores in (plan_scores, window_scores):
        with pytest.raises(ValueError, match=message) as error:
            scores(pred, true)
        assert "\n" not in str(error.value)


def test_an_id_outside_the_pool_and_an_empty_batch_are_errors() -> None:
    for pred, true in (([[2]], [[0]]), ([[0]], [[2]])):
        with pytest.raises(ValueError, match="at least .* and below n_actions, 2"):
            window_scores(pred, true, n_actions=2)
    with pytest.raises(ValueError, match="batch_size is 0"):
        plan_scores([[0]], [[0]], batch_size=0)

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

torch = pytest.importorskip("torch")

from stepline.metrics.soda import soda_d  # noqa: E402
from stepline.models.matching import hungarian, ordered, soft_ordered, temporal_order  # noqa: E402
from tests.gpu import GPU  # noqa: E402
from tests.models.soft_soda import Smooth, cell_by_cell  # noqa: E402

smooths = pytest.mark.parametrize("smooth", ["expectation", "logsumexp"])
devices = pytest.mark.parametrize(
    "device",
    ["cpu", pytest.param(GPU, marks=pytest.mark.gpu)],
)
sizes = st.tuples(st.integers(1, 4), st.integers(1, 5))
costs = arrays(np.float64, sizes, elements=st.integers(-8, 8).map(lambda eighths: eighths / 8))
"""Sums of eighths are exact, and ties are frequent."""


def matchings(n: int, m: int, pairs: range) -> Iterator[tuple[list[int], list[int]]]:
    """Yield all matchings that keep order, with so many pairs."""
    for count in pairs:
        for rows in combinations(range(n), count):
            for columns in combinations(range(m), count):
                yield list(rows), list(columns)


def least_sum(cost: np.ndarray, *, complete: bool) -> float:
    least = min(cost.shape)
    counts = range(least if complete else 0, least + 1)
    return min(float(cost[rows, columns].sum()) for rows, columns in matchings(*cost.shape, counts))


def iou(true: Any, predicted: Any) -> Any:
    (start, end), (other_start, other_end) = true.T[:, :, None], predicted.T[:, None]
    both = (torch.minimum(end, other_end) - torch.maximum(start, other_start)).clamp(min=0)
    return both / (end - start + other_end - other_start - both + 1e-8)


def test_segments_are_ordered_whole_by_start_then_end_then_place() -> None:
    """Sorted column by column, as in the released code, (1, 9) would become (1, 4)."""
    segments = torch.tensor([[[4.0, 8.0], [1.0, 9.0], [1.0, 4.0], [4.0, 8.0]], [[0.0, 1.0]] * 4])
    assert temporal_order(segments).tolist() == [[2, 1, 0, 3], [0, 1, 2, 3]]


def test_the_papers_example_is_matched_as_it_says() -> None:
    """Fig. 4, Example 1 with its printed order: Hungarian crosses, SODA does not."""
    cost = -iou(torch.tensor([[2, 5], [7, 9]]), torch.tensor([[1, 9], [1, 4], [4, 8]]))
    assert [places.tolist() for places in hungarian(cost)] == [[0, 1], [1, 0]]
    assert [places.tolist() for places in ordered(cost)] == [[0, 1], [1, 2]]
    assert [places.tolist() for places in ordered(cost, complete=False)] == [[0, 1], [1, 2]]


@given(costs, st.booleans())
def test_an_ordered_matching_is_the_best_of_all_that_keep_order(cost: np.ndarray, complete: bool) -> None:
    rows, columns = ordered(torch.tensor(cost), complete=complete)
    assert (rows.diff() > 0).all()
    assert (columns.diff() > 0).all()
    assert cost[rows, columns].sum() == least_sum(cost, complete=complete)
    if complete:
        assert len(rows) == min(cost.shape)
    else:
        assert (cost[rows, columns] < 0).all()


@given(costs)
def test_order_never_costs_less_than_none(cost: np.ndarray) -> None:
    table = torch.tensor(cost)
    free = hungarian(table)
    assert len(free[0]) == min(cost.shape)
    assert table[ordered(table)].sum() >= table[free].sum()


@pytest.mark.parametrize(
    ("cost", "complete", "pairs"),
    [
        ([[0, 0, 0], [0, 0, 0]], True, [[0, 1], [0, 1]]),
        ([[0, 0], [0, 0], [0, 0]], True, [[0, 1], [0, 1]]),
        ([[0, 0, 0], [0, 0, 0]], False, [[], []]),
        ([[-1, -1]], False, [[0], [0]]),
        ([[-1], [-1]], False, [[0], [0]]),
        ([[-1, 0], [-2, -1]], False, [[1], [0]]),
        ([[0, -1], [-1, 0]], False, [[1], [0]]),
    ],
)
def test_of_equal_sums_the_last_is_left_out_first_a_column_before_a_row(
    cost: list[list[float]], complete: bool, pairs: list[list[int]]
) -> None:
    assert [places.tolist() for places in ordered(torch.tensor(cost), complete=complete)] == pairs


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0)])
def test_of_nothing_nothing_is_matched(shape: tuple[int, int]) -> None:
    for rows, columns in (hungarian(torch.zeros(shape)), ordered(torch.zeros(shape)), ordered(torch.zeros(shape).T)):
        assert rows.tolist() == columns.tolist() == []
    cost = torch.zeros(2, *shape, requires_grad=True)
    soft_ordered(cost, gamma=0.1).sum().backward()
    assert soft_ordered(cost, gamma=0.1).tolist() == [0, 0]


@pytest.mark.parametrize("matcher", [hungarian, ordered])
def test_costs_that_cannot_be_compared_are_refused(matcher: Any) -> None:
    with pytest.raises(ValueError, match=r"a matching needs a table of costs, not \(3,\)"):
        matcher(torch.zeros(3))
    for cost in (torch.tensor([[0.0, float("nan")]]), torch.tensor([[float("inf")]])):
        with pytest.raises(FloatingPointError, match="the costs of a matching are not finite"):
            matcher(cost)


def test_costs_keep_their_gradient() -> None:
    cost = torch.tensor([[1.0, 2.0], [3.0, 1.0]], requires_grad=True)
    cost[ordered(cost)].sum().backward()
    assert cost.grad.tolist() == [[1, 0], [0, 1]]


def test_the_sum_of_matched_ious_is_that_of_soda() -> None:
    for n, m in ((1, 1), (1, 6), (6, 1), (5, 8), (8, 5)):
        true, predicted = (torch.tensor(np.random.default_rng(n).random((k, 2)) * 60).sort(-1)[0] for k in (n, m))
        overlap = iou(true[temporal_order(true)], predicted[temporal_order(predicted)])
        found = overlap[ordered(-overlap, complete=False)].sum()
        assert float(found) == pytest.approx(n * soda_d(true, predicted).recall, abs=1e-9)


@smooths
@devices
def test_diagonals_say_what_cells_say(smooth: Smooth, device: str) -> None:
    for n, m in ((1, 1), (1, 4), (4, 1), (3, 5), (5, 3), (4, 4)):
        cost = np.random.default_rng(n + m).normal(size=(3, n, m))
        found = soft_ordered(torch.tensor(cost, device=device), gamma=0.3, smooth=smooth)
        assert found.device.type == device
        assert found.tolist() == pytest.approx([cell_by_cell(each, 0.3, smooth) for each in cost])


def test_the_smooth_least_is_by_default_the_one_of_the_released_training() -> None:
    cost = np.random.default_rng(0).normal(size=(1, 3, 4))
    found = soft_ordered(torch.tensor(cost), gamma=0.3).item()
    assert found == pytest.approx(cell_by_cell(cost[0], 0.3, "expectation"))


@given(costs)
def test_a_small_gamma_gives_the_least_sum(cost: np.ndarray) -> None:
    least = least_sum(cost, complete=False)
    for smooth in ("expectation", "logsumexp"):
        assert soft_ordered(torch.tensor(cost)[None], gamma=1e-4, smooth=smooth).item() == pytest.approx(
            least, abs=5e-3
        )


@smooths
@devices
def test_padding_is_without_effect_whatever_it_holds(smooth: Smooth, device: str) -> None:
    cost = torch.randn(4, 5, 6, generator=torch.Generator().manual_seed(0)).to(device)
    rows = torch.tensor([0, 1, 3, 5], device=device)
    for filling in (7.0, float("inf"), float("nan")):
        padded = cost.clone()
        for member, count in enumerate(rows.tolist()):
            padded[member, count:] = filling
        padded.requires_grad_()
        found = soft_ordered(padded, gamma=0.1, smooth=smooth, rows=rows)
        found.sum().backward()
        for member, count in enumerate(rows.tolist()):
            alone = cost[member : member + 1, :count].clone().requires_grad_()
            soft_ordered(alone, gamma=0.1, smooth=smooth).sum().backward()
            assert found[member].item() == pytest.approx(soft_ordered(alone, gamma=0.1, smooth=smooth).item(), abs=1e-6)
            torch.testing.assert_close(padded.grad[member, :count], alone.grad[0])
            assert not padded.grad[member, count:].any()


@smooths
@devices
@pytest.mark.parametrize("rows", [None, [2, 3, 0]])
def test_gradients_are_those_of_the_values(smooth: Smooth, device: str, rows: list[int] | None) -> None:
    cost = torch.randn(3, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    there = None if rows is None else torch.tensor(rows, device=device)
    assert torch.autograd.gradcheck(
        lambda each: soft_ordered(each, gamma=0.2, smooth=smooth, rows=there), cost.to(device).requires_grad_()
    )


@smooths
def test_a_small_gamma_stays_finite_at_any_cost(smooth: Smooth) -> None:
    cost = (100 * torch.randn(2, 8, 9, generator=torch.Generator().manual_seed(2))).requires_grad_()
    found = soft_ordered(cost, gamma=0.01, smooth=smooth)
    found.sum().backward()
    assert found.isfinite().all()
    assert cost.grad.isfinite().all()
    for each, total in zip(cost.detach(), found, strict=True):
        assert total.item() == pytest.approx(each[ordered(each, complete=False)].sum().item(), abs=0.1)


@pytest.mark.parametrize("gamma", [0.0, -1.0, float("nan")])
def test_a_gamma_of_nothing_is_refused(gamma: float) -> None:
    with pytest.raises(ValueError, match="gamma must be above 0"):
        soft_ordered(torch.zeros(1, 2, 2), gamma=gamma)

"""One-to-one matching of true and predicted segments.

The minimum cost in any order (Hungarian), the minimum cost in temporal order (SODA), and the smooth minimum cost in
temporal order that is used as a training loss (Soft-SODA): Batra et al., "A Closer Look at Temporal Ordering in the
Segmentation of Instructional Videos", Sec. 4. The released matchers sort starts and ends of predicted segments
separately and match leftover segments at random. Here, ``temporal_order`` sorts whole segments, and leftover segments
are in no pair.
"""

from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

Matcher = Literal["hungarian", "soda", "soft_soda"]


def temporal_order(segments: Tensor) -> Tensor:
    """Return the (..., m) indices that sort (..., m, 2) starts and ends, in any unit, by start, then by end.

    The sort is stable.
    """
    start, end = segments.unbind(-1)
    by_end = end.argsort(dim=-1, stable=True)
    by_start = start.gather(-1, by_end).argsort(dim=-1, stable=True)
    return by_end.gather(-1, by_start)


def hungarian(cost: Tensor) -> tuple[Tensor, Tensor]:
    """Return the rows (ascending) and columns, (min(n, m),) each, of the one-to-one matching with the minimum cost.

    cost: (n, m), finite. Raises FloatingPointError if it is not.
    """
    from scipy.optimize import linear_sum_assignment

    return _places(linear_sum_assignment(_finite(cost)), cost)


def ordered(cost: Tensor, *, complete: bool = True) -> tuple[Tensor, Tensor]:
    """Return the rows and columns, both ascending, of the order-preserving one-to-one matching with the minimum cost.

    cost: (n, m), finite, rows and columns in temporal order. complete: match all rows (or all columns, if there are
    fewer), as in Hungarian matching. Otherwise any may stay unmatched at no cost (Eq. 5, with min and costs instead of
    max and IoU), so only pairs with a negative cost are matched. Ties are resolved from the end: a column, then a row,
    is skipped if that does not raise the cost. Raises FloatingPointError if a cost is not finite.
    """
    if complete and cost.ndim == 2 and len(cost) > cost.shape[1]:
        columns, rows = ordered(cost.T)
        return rows, columns
    costs = _finite(cost)
    row, column = costs.shape
    table = np.zeros((row + 1, column + 1))
    table[1:, 0] = np.inf if complete else 0
    for i, of_row in enumerate(costs):
        matched = table[i, :-1] + of_row
        table[i + 1, 1:] = np.minimum.accumulate(matched if complete else np.minimum(matched, table[i, 1:]))
    pairs = []
    while row and column:
        if table[row, column] == table[row, column - 1]:
            column -= 1
        elif not complete and table[row, column] == table[row - 1, column]:
            row -= 1
        else:
            row, column = row - 1, column - 1
            pairs.append((row, column))
    return _places(np.array(pairs[::-1], dtype=np.int64).reshape(-1, 2).T, cost)


def soft_ordered(
    cost: Tensor,
    *,
    gamma: float,
    smooth: Literal["expectation", "logsumexp"] = "expectation",
    rows: Tensor | None = None,
) -> Tensor:
    """Return the (B,) costs of ``ordered(complete=False)``, with every min of Eq. 5 replaced by a smooth minimum.

    cost: (B, n, m), rows and columns in temporal order. gamma: above 0, in the unit of the costs; as it approaches 0,
    the result approaches the minimum. smooth: ``expectation`` of values a is the sum of softmax(-a / gamma) * a, never
    below the minimum; the released training uses it. ``logsumexp`` is -gamma * log(sum(exp(-a / gamma))), never above
    the minimum; the released variant adds 1e-5 to the sum. rows: (B,) in 0..n, the number of rows of each batch member;
    all by default. Rows beyond it have no effect, even if they are not finite. Raises ValueError if gamma is not above
    0.
    """
    if not gamma > 0:
        raise ValueError(f"gamma must be above 0, not {gamma}")
    members, n, m = cost.shape
    if n == 0 or m == 0:
        return cost.sum(dim=(1, 2))
    if rows is not None:
        cost = cost.masked_fill((torch.arange(n, device=cost.device) >= rows[:, None])[..., None], 0)
    # Row i is shifted right by i, so that each antidiagonal becomes a column.
    skewed = functional.pad(cost, (0, n)).flatten(1)[:, : n * (n + m - 1)].view(members, n, n + m - 1)
    before = last = cost.new_zeros(members, n + 1)  # two antidiagonals of the table, indexed by row; 0 at the borders
    ends = [last[:, 0]]
    for diagonal, costs in enumerate(skewed.unbind(-1), start=2):
        first, stop = max(1, diagonal - m), min(n, diagonal - 1)
        up, left = last[:, first - 1 : stop], last[:, first : stop + 1]
        matched = before[:, first - 1 : stop] + costs[:, first - 1 : stop]
        options = torch.stack([up, left, matched])
        if smooth == "expectation":
            found = (torch.softmax(-options / gamma, dim=0) * options).sum(dim=0)
        else:
            found = -gamma * torch.logsumexp(-options / gamma, dim=0)
        before, last = last, functional.pad(found, (first, n - stop))
        if diagonal > m:
            ends.append(found[:, 0])
    return ends[-1] if rows is None else torch.stack(ends, dim=1).gather(1, rows[:, None])[:, 0]


def _finite(cost: Tensor) -> NDArray[np.float64]:
    if cost.ndim != 2:
        raise ValueError(f"a matching needs a table of costs, not {tuple(cost.shape)}")
    if not cost.isfinite().all():
        raise FloatingPointError("the costs of a matching are not finite")
    costs: NDArray[np.float64] = cost.detach().to("cpu", torch.float64).numpy()
    return costs


def _places(pairs: Any, cost: Tensor) -> tuple[Tensor, Tensor]:
    rows, columns = (torch.as_tensor(places, dtype=torch.int64, device=cost.device) for places in pairs)
    return rows, columns

"""The soft ordered matching by diagonals, compared with the same table cell by cell, forward and backward."""

import torch
from measure import show, sized
from torch import Tensor

from stepline.models.matching import soft_ordered

SEGMENTS, QUERIES, GAMMA = sized(8, small=3), sized(100, small=10), 0.01
COST = -torch.rand(1, SEGMENTS, QUERIES, generator=torch.Generator().manual_seed(0))


def by_cell(cost: Tensor) -> Tensor:
    """Return the last cell of one table. cost: (n, m)."""
    zero = cost.new_zeros(())
    above = [zero] * (cost.shape[1] + 1)
    for of_row in cost:
        row = [zero]
        for column, each in enumerate(of_row):
            options = torch.stack([row[-1], above[column + 1], above[column] + each])
            row.append((torch.softmax(-options / GAMMA, dim=0) * options).sum())
        above = row
    return above[-1]


def main() -> None:
    """Print the tables."""
    torch.set_num_threads(1)

    def diagonals(batch: int) -> Tensor:
        cost = COST.repeat(batch, 1, 1).requires_grad_()
        soft_ordered(cost, gamma=GAMMA).sum().backward()  # type: ignore[no-untyped-call]
        assert cost.grad is not None
        return cost.grad

    def cells() -> Tensor:
        cost = COST[0].clone().requires_grad_()
        by_cell(cost).backward()  # type: ignore[no-untyped-call]
        assert cost.grad is not None
        return cost.grad

    torch.testing.assert_close(diagonals(1)[0], cells(), rtol=0, atol=1e-3)  # float32 rounding, divided by gamma
    calls = {
        "cell by cell": cells,
        "by diagonals": lambda: diagonals(1),
        "by diagonals, 32 at once": lambda: diagonals(32),
    }
    show(f"{SEGMENTS} segments with {QUERIES} queries, forward and backward", "cell by cell", calls)


if __name__ == "__main__":
    main()

"""Windows of a bank as a torch dataset."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

Window = tuple[str, float, float]
"""video, start_s, end_s."""


class Windows(torch.utils.data.Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Windows of a bank as items: rows (length, D) and the mask of existing rows (length,), see ``Bank.torch``.

    asked: the (video, start_s, end_s) of each item. ``torch.utils.data.StackDataset(windows, labels)`` adds a label to
    each item. A worker process that receives the dataset opens the stores again; no rows are sent.
    """

    def __init__(self, asked: Sequence[Window], gather: Callable[[Sequence[Window]], tuple[Any, Any]]) -> None:
        """gather: maps W windows to arrays, (W, length, D) and (W, length)."""
        self.asked, self._gather = asked, gather

    def __len__(self) -> int:
        return len(self.asked)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        rows, there = self._gather([self.asked[index]])
        return torch.from_numpy(rows[0]), torch.from_numpy(there[0])

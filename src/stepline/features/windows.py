"""Windows of a bank as a torch dataset."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from stepline.features.bank import Bank


class Windows(torch.utils.data.Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """The windows of ``Bank.windows`` as items: rows (length, D) and the mask of existing rows (length,).

    A worker process that receives it opens the stores again; no rows are sent.
    """

    def __init__(self, bank: "Bank", asked: Sequence[tuple[str, float, float]], length: int) -> None:
        """asked: windows (video, start_s, end_s) of at most ``length`` rows."""
        self.bank, self.asked, self.length = bank, asked, length

    def __len__(self) -> int:
        return len(self.asked)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        video, start_s, end_s = self.asked[index]
        rows, there = self.bank.windows([video], [start_s], [end_s], length=self.length)
        return torch.from_numpy(rows[0]), torch.from_numpy(there[0])

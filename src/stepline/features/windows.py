"""Windows of a bank as a data set for torch."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from stepline.features.bank import Bank


class Windows(torch.utils.data.Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """What ``Bank.windows`` gives, window by window: rows (length, D) and which of them there are (length,).

    A worker that is sent it opens the stores anew; no rows are sent.
    """

    def __init__(
        self, bank: "Bank", videos: Sequence[str], starts_s: Sequence[float], ends_s: Sequence[float], length: int
    ) -> None:
        """Take the windows [start_s, end_s) of ``videos``, of at most ``length`` rows."""
        self.bank, self.length = bank, length
        self.asked = list(zip(videos, starts_s, ends_s, strict=True))

    def __len__(self) -> int:
        return len(self.asked)

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        video, start_s, end_s = self.asked[index]
        rows, there = self.bank.windows([video], [start_s], [end_s], length=self.length)
        return torch.from_numpy(rows[0]), torch.from_numpy(there[0])

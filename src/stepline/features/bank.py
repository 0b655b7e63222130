"""The bank: all features of a dataset by one spec."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from stepline.errors import StoreError
from stepline.features.store import Block, Rows, read
from stepline.spec import Spec


@dataclass(frozen=True)
class Bank:
    """Rows of every video in some stores. Use ``Bank.open``."""

    folders: dict[str, Path]
    blocks: dict[str, Block]
    rows: dict[str, Rows]

    @classmethod
    def open(cls, folders: Sequence[Path], spec: Spec) -> "Bank":
        """Open the stores in ``folders``; rows are read when they are asked for.

        Raises StoreError where one is absent, damaged or made by another spec, or where a video stands in two.
        """
        bank = cls({}, {}, {})
        for folder in folders:
            rows, blocks = read(folder, spec)
            for video, block in blocks.items():
                if video in bank.blocks:
                    raise StoreError(f"{video} stands in {bank.folders[video]} and in {folder}: remove one of them")
                bank.folders[video] = folder
                bank.blocks[video] = block
                bank.rows[video] = rows[block.offset : block.offset + block.length]
        return bank

    @property
    def videos(self) -> frozenset[str]:
        """The videos of which there are features."""
        return frozenset(self.blocks)

    def window(self, video: str, start_s: float, end_s: float) -> Rows:
        """Return the (n, D) rows of ``video`` whose time lies in [start_s, end_s), n >= 1.

        Where there is none, the one row nearest to the middle; of two equally near ones the earlier.
        Raises StoreError where the bank has no such video.
        """
        if video not in self.blocks:
            raise StoreError(f"{video} has no features: see its reason in the manifest of `stepline extract`")
        block = self.blocks[video]
        first = max(0, _index(block, start_s))
        last = min(block.length, _index(block, end_s))
        if first >= last:
            middle = _index(block, (start_s + end_s) / 2 - block.hop_s / 2)
            first = min(max(0, middle), block.length - 1)
            last = first + 1
        return self.rows[video][first:last]


def _index(block: Block, time_s: float) -> int:
    """Return the first row at or after a time. Times within a millionth of a hop are equal."""
    return ceil((time_s - block.t0_s) / block.hop_s - 1e-6)

"""The bank: all features of a dataset by one spec."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil
from operator import itemgetter
from pathlib import Path

import numpy as np

from stepline.errors import StoreError
from stepline.features.store import Block, Rows, read
from stepline.spec import Spec


@dataclass(frozen=True)
class Bank:
    """Rows of every video in some stores. Use ``Bank.open``.

    blocks: in time's order: one of each video, or one of each of its spans. rows: (T, D), block after block.
    """

    folders: dict[str, Path]
    blocks: dict[str, list[Block]]
    rows: dict[str, Rows]

    @classmethod
    def open(cls, folders: Sequence[Path], spec: Spec) -> "Bank":
        """Open the stores in ``folders``; rows are read when they are asked for.

        Raises StoreError where one is absent, damaged or made by another spec, or where a video stands in two.
        """
        bank = cls({}, {}, {})
        for folder in folders:
            rows, found = read(folder, spec)
            for video, blocks in found.items():
                if video in bank.blocks:
                    raise StoreError(f"{video} stands in {bank.folders[video]} and in {folder}: remove one of them")
                bank.folders[video] = folder
                bank.blocks[video] = blocks
                bank.rows[video] = rows[blocks[0].offset : blocks[-1].offset + blocks[-1].length]
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
        blocks = self.blocks[video]
        found = []
        for block in blocks:
            first, last = max(0, _index(block, start_s)), min(block.length, _index(block, end_s))
            if first < last:
                found.append(self._rows(block, first, last))
        if found:
            return found[0] if len(found) == 1 else np.concatenate(found)
        middle_s = (start_s + end_s) / 2
        _, block, row = min((_nearest(block, middle_s) for block in blocks if block.length), key=itemgetter(0))
        return self._rows(block, row, row + 1)

    def _rows(self, block: Block, first: int, last: int) -> Rows:
        start = block.offset - self.blocks[block.video][0].offset
        return self.rows[block.video][start + first : start + last]


def _index(block: Block, time_s: float) -> int:
    """Return the first row at or after a time. Times within a millionth of a hop are equal."""
    return ceil((time_s - block.t0_s) / block.hop_s - 1e-6)


def _nearest(block: Block, time_s: float) -> tuple[float, Block, int]:
    """Return the nearest row, of two the earlier, and before it its distance in hops."""
    row = min(max(0, _index(block, time_s - block.hop_s / 2)), block.length - 1)
    return round(abs((time_s - block.t0_s) / block.hop_s - row), 6), block, row

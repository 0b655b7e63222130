"""Long context from a bank of features of 12 s segments, with one row per second (Spacewalk-18, Appendix E.3).

The window of w seconds centred at t has M = w/12 segments. Segment i in 0..M-1 starts at t - w/2 + 12 i; its feature is
the row of the nearest second, the later one in a tie. Segments that start outside the recording are excluded. The
query's segment is the one that contains t. The paper's "m = M/2" is ambiguous; here it is M // 2, counted from 0. For
an even M, where t is a border, this is the segment that starts at t. The query's segment is never excluded: if it
starts outside the recording, the nearest row is used.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from stepline.errors import ConfigError

SEGMENT_S = 12
BLOCK = 100 * SEGMENT_S
"""The number of rows that are summed at once."""
Floats = NDArray[np.float32]


class Rows(Protocol):
    """A (T, D) array, in memory or on disk, with one row per second."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(T, D)."""

    def __getitem__(self, rows: Any) -> Any: ...


@dataclass(frozen=True)
class Block:
    """A part of a segment's feature. vectors: (n, D). index: (T,), the vector of each second; None if n = T."""

    vectors: NDArray[Any]
    index: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.vectors if self.index is None else self.index)


@dataclass(frozen=True)
class Segments:
    """A (T, D) bank of one recording whose rows are assembled when they are read; see ``Rows``.

    blocks: concatenated along D. normalise: scale each block to unit length.
    """

    blocks: tuple[Block, ...]
    normalise: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """(T, D), with T the number of seconds that all blocks have."""
        return min(map(len, self.blocks)), sum(block.vectors.shape[1] for block in self.blocks)

    def __getitem__(self, rows: Any) -> Floats:
        parts = []
        for block in self.blocks:
            part = block.vectors[rows if block.index is None else block.index[rows]].astype(np.float32)
            if self.normalise:
                part /= np.maximum(np.linalg.norm(part, axis=-1, keepdims=True), 1e-12)
            parts.append(part)
        return np.concatenate(parts, axis=-1)


def n_segments(context_s: float) -> int:
    """Return M; raise ConfigError if it is not an integer or is below 3, which leaves no history or no future."""
    count = context_s / SEGMENT_S
    if count != round(count) or count < 3:
        raise ConfigError(f"a window of {context_s:g} s: long context needs 3 or more whole segments of {SEGMENT_S} s")
    return round(count)


def rows_of(times_s: NDArray[np.float64], context_s: float, length: int) -> NDArray[np.int64]:
    """Return the rows of the segments of N windows, (N, M), in a recording with ``length`` rows; -1 means excluded."""
    count = n_segments(context_s)
    first = np.floor(times_s - context_s / 2 + 0.5).astype(np.int64)
    rows = first[:, None] + SEGMENT_S * np.arange(count)
    rows[:, count // 2] = rows[:, count // 2].clip(0, length - 1)
    rows[(rows < 0) | (rows >= length)] = -1
    return rows


def average(bank: Rows, times_s: NDArray[np.float64], context_s: float) -> Floats:
    """Return the means of the segments of N windows, (N, D) (Eq. 5)."""
    history, query, future, counts = _sums(bank, times_s, context_s)
    total = history + future
    total += query
    total /= 1 + counts.sum(axis=1, keepdims=True)
    return total.astype(np.float32)


def concatenation(bank: Rows, times_s: NDArray[np.float64], context_s: float) -> Floats:
    """Return the mean history, query and mean future of N windows, (N, 3 D) (Eq. 6); an empty mean is 0."""
    history, query, future, counts = _sums(bank, times_s, context_s)
    history /= np.maximum(counts[:, :1], 1)
    future /= np.maximum(counts[:, 1:], 1)
    return np.concatenate([history, query, future], axis=1, dtype=np.float32)


def _sums(
    bank: Rows, times_s: NDArray[np.float64], context_s: float
) -> tuple[NDArray[np.float64], Floats, NDArray[np.float64], NDArray[np.int64]]:
    """Return the sum of the history, the query and the sum of the future, each (N, D), and the counts (N, 2).

    Prefix sums of rows 12 s apart are computed block by block; each sum is the difference of two prefix sums.
    """
    length, dimension = bank.shape
    rows = rows_of(times_s, context_s, length)
    middle = rows.shape[1] // 2
    query = np.zeros((len(rows), dimension), np.float32)
    sums = [np.zeros((len(rows), dimension)) for _ in range(2)]
    sides = rows[:, :middle], rows[:, middle + 1 :]
    counts = np.stack([(side >= 0).sum(axis=1) for side in sides], axis=1)
    ends = [_ends(side) for side in sides]
    for start, block, before in _prefixes(bank):
        inside = np.flatnonzero((rows[:, middle] >= start) & (rows[:, middle] < start + len(block)))
        query[inside] = block[rows[inside, middle] - start]
        for total, (first, end) in zip(sums, ends, strict=True):
            for each, sign in ((end, 1), (first, -1)):
                inside = np.flatnonzero((each >= start) & (each < start + len(before)))
                total[inside] += sign * before[each[inside] - start]
    return sums[0], query, sums[1], counts


def _ends(side: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first row of each window's side, and the row 12 s after its last row; -1 and 11 if the side is empty.

    The prefix sums at -1 and 11 are both empty.
    """
    last = side.max(axis=1)
    first = np.where(side >= 0, side, last[:, None]).min(axis=1)
    return first, last + SEGMENT_S


def _prefixes(bank: Rows) -> Iterator[tuple[int, NDArray[Any], NDArray[np.float64]]]:
    """Yield blocks: the first row's index, the rows, and for each row (and 12 s after the end) its prefix sum."""
    length, dimension = bank.shape
    carried = np.zeros((SEGMENT_S, dimension))
    for start in range(0, length + SEGMENT_S, BLOCK):
        block = bank[start : min(start + BLOCK, length)]
        laid = np.zeros((BLOCK // SEGMENT_S + 1, SEGMENT_S, dimension))
        laid[0] = carried
        laid[1:].reshape(BLOCK, dimension)[: len(block)] = block
        np.cumsum(laid, axis=0, out=laid)
        carried = laid[-1].copy()
        yield start, block, laid[:-1].reshape(BLOCK, dimension)

"""A local, partial copy of a remote array's rows, downloaded on request."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.features import objects


class PartialCopy:
    """A (rows, D) array whose rows are the first bytes of an object, in order.

    ``rows`` maps an unnamed file in the folder for temporary files (``TMPDIR``). Rows that are not downloaded are holes
    in this file.
    """

    def __init__(self, url: str, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        """Create an empty copy of the array of this shape and dtype at an object's URL; nothing is read."""
        self.url = url
        self.row_bytes = shape[1] * dtype.itemsize
        self._file = TemporaryFile()  # noqa: SIM115 - it stays open as long as the rows are used
        self._file.truncate(shape[0] * self.row_bytes)
        stored = dtype.newbyteorder("<")
        self.rows: NDArray[Any] = (
            np.memmap(self._file, stored, mode="r", shape=shape) if shape[0] * shape[1] else np.zeros(shape, stored)
        )

    def pieces(self, spans: Sequence[tuple[int, int]]) -> Iterator[Callable[[], None]]:
        """Yield functions that download the rows of spans (first, length), in order, with requests of up to 16 MiB."""
        joined: list[list[int]] = []
        for first, length in spans:
            if joined and joined[-1][1] == first:
                joined[-1][1] += length
            else:
                joined.append([first, first + length])
        for first, end in joined:
            for start in range(first * self.row_bytes, end * self.row_bytes, objects.PIECE):
                yield partial(self._bring, start, min(start + objects.PIECE, end * self.row_bytes))

    def _bring(self, start: int, end: int) -> None:
        content = objects.get_range(self.url, start, end)
        while content:
            written = os.pwrite(self._file.fileno(), content, start)
            start, content = start + written, content[written:]

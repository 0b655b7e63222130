"""A remote array's rows in a file on this machine, as far as they were asked for."""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from tempfile import TemporaryFile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.features import objects


class PartialCopy:
    """The (rows, D) array of which an object's first bytes are the rows, in order.

    ``rows`` maps a file without a name in the folder for temporary files (``TMPDIR``), with holes where nothing was
    brought.
    """

    def __init__(self, url: str, shape: tuple[int, int], dtype: np.dtype[Any]) -> None:
        """Take an object's URL and the array's shape and type; nothing is read."""
        self.url = url
        self.row_bytes = shape[1] * dtype.itemsize
        self._file = TemporaryFile()  # noqa: SIM115 - it is there as long as the rows are
        self._file.truncate(shape[0] * self.row_bytes)
        stored = dtype.newbyteorder("<")
        self.rows: NDArray[Any] = (
            np.memmap(self._file, stored, mode="r", shape=shape) if shape[0] * shape[1] else np.zeros(shape, stored)
        )

    def pieces(self, spans: Sequence[tuple[int, int]]) -> Iterator[Callable[[], None]]:
        """Yield what brings the rows of spans (first, length), in order: a request each, of up to 16 MiB."""
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

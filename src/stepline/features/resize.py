"""Resizing a video's rows to a fixed number (PDVC, ``sample_method: nearest``)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def resize(rows: NDArray[Any], length: int) -> NDArray[Any]:
    """Return (length, D): the rows of (n, D) nearest to ``length`` equidistant positions from the first to the last.

    Position i is i (n - 1) / (length - 1); of two equally near rows, the earlier is taken, as SciPy's ``nearest`` does.
    The dtype is kept. Raises ValueError if there are no rows, or ``length`` is below 1.
    """
    if not len(rows) or length < 1:
        raise ValueError(f"{len(rows)} rows cannot be resized to {length}")
    gaps = max(length - 1, 1)
    chosen: NDArray[Any] = rows[(2 * np.arange(length) * (len(rows) - 1) + gaps - 1) // (2 * gaps)]
    return chosen

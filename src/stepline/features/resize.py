"""A fixed number of rows from however many a video has (PDVC, ``sample_method: nearest``)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def resize(rows: NDArray[Any], length: int) -> NDArray[Any]:
    """Return (length, D), the rows of (n, D) nearest to ``length`` places from the first to the last.

    Row i is taken at i (n - 1) / (length - 1), of two equally near ones the earlier, as SciPy's ``nearest`` does. The
    dtype stays. Raises ValueError where there are no rows, or none are asked for.
    """
    if not len(rows) or length < 1:
        raise ValueError(f"{len(rows)} rows cannot be resized to {length}")
    gaps = max(length - 1, 1)
    chosen: NDArray[Any] = rows[(2 * np.arange(length) * (len(rows) - 1) + gaps - 1) // (2 * gaps)]
    return chosen

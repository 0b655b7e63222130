"""Rows of length 1."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def unit(rows: NDArray[Any]) -> NDArray[Any]:
    """Return the (n, D) rows scaled to length 1; rows of zeros stay."""
    scaled: NDArray[Any] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return scaled

"""Soft-SODA, one cell after the other."""

from typing import Literal

import numpy as np

Smooth = Literal["expectation", "logsumexp"]


def cell_by_cell(cost: np.ndarray, gamma: float, smooth: Smooth, beside: float = 0) -> float:
    """The table of Eq. 5 with smooth minima, one cell after the other; ``beside`` the sum of exponentials."""
    table = np.zeros(np.add(cost.shape, 1))
    for i, j in np.ndindex(cost.shape):
        options = np.array([table[i, j + 1], table[i + 1, j], table[i, j] + cost[i, j]])
        weights = np.exp(-(options - options.min()) / gamma)
        if smooth == "expectation":
            table[i + 1, j + 1] = (weights * options).sum() / weights.sum()
        else:
            table[i + 1, j + 1] = options.min() - gamma * np.log(weights.sum() + beside)
    return float(table[-1, -1])

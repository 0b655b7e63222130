"""The best seconds for steps in a given order."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

SKIPPED = -1


def ordered_times(scores: NDArray[Any], *, skip: float | None = None) -> NDArray[np.int64]:
    """Return the (K,) ascending rows of K steps with the highest sum of (T, K) scores.

    This is CrossTask's protocol (Zhukov et al., 2019): one second per step, in order. skip: the score of a skipped
    step, which has row -1; None means that no step can be skipped. In a tie, having a row is preferred to skipping,
    then the earliest rows, beginning with the last step. Without skips, every step then has its earliest possible row.
    Raises ValueError if there are fewer rows than steps and no step can be skipped.
    """
    rows, steps = scores.shape
    if skip is None and rows < steps:
        raise ValueError(f"{steps} steps in order need as many rows: there are {rows}")
    best = np.zeros((steps + 1, rows + 1))
    here = np.empty((steps, rows))
    for step in range(steps):
        here[step] = scores[:, step] + best[step, :-1]
        best[step + 1] = np.maximum.accumulate(np.concatenate(([-np.inf], here[step])))
        if skip is not None:
            best[step + 1] = np.maximum(best[step + 1], best[step] + skip)
    found = np.full(steps, SKIPPED)
    left = rows
    for step in reversed(range(steps)):
        reached = here[step, :left] == best[step + 1, left]
        if reached.any():
            left = found[step] = int(reached.argmax())
    return found

"""Average precision."""

import numpy as np
from numpy.typing import NDArray


def average_precision(
    scores: NDArray[np.floating], positives: NDArray[np.bool_], *, interpolated: bool = True
) -> float:
    """Return the average precision of a ranking, in [0, 1]; NaN if no sample is positive.

    scores: (N,), higher is ranked first. positives: (N,). Ties are pessimistic: negatives come first.
    interpolated: the precision at a recall level is the highest precision at that or any greater recall, as in
    Spacewalk-18's released evaluation and PASCAL VOC 2010. Otherwise the result is the mean precision at the positives.
    """
    n_positives = int(positives.sum())
    if n_positives == 0:
        return float("nan")
    hits = np.arange(1, n_positives + 1)
    before = np.searchsorted(np.sort(-scores[~positives]), np.sort(-scores[positives]), side="right")
    precision = hits / (hits + before)
    if interpolated:
        precision = np.maximum.accumulate(precision[::-1])[::-1]
    return float(precision.mean())

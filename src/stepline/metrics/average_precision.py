"""Average precision."""

import numpy as np
from numpy.typing import NDArray


def average_precision(
    scores: NDArray[np.floating], positives: NDArray[np.bool_], *, interpolated: bool = True
) -> float:
    """Return the average precision of a ranking, in [0, 1]; NaN where nothing is positive.

    scores: (N,), higher is ranked first. positives: (N,). Ties are pessimistic: negatives come first.
    interpolated: precision at a recall is the highest at that recall or a greater one (as Spacewalk-18's released
    evaluation and PASCAL VOC 2010); otherwise the mean of the precisions at the positives.
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

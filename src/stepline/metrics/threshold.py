"""The threshold below which a sample is Irrelevant (Spacewalk-18, Eq. 2)."""

from typing import Literal

import numpy as np
from numpy.typing import NDArray

TIED = 1e-12
"""F1 that are equal as fractions differ by less after rounding."""


def best_threshold(
    labels: NDArray[np.int64],
    best: NDArray[np.int64],
    scores: NDArray[np.floating],
    *,
    f1: Literal["binary", "macro"],
    groups: NDArray[np.int64],
) -> tuple[float, float]:
    """Return the threshold with the highest F1, and that F1.

    labels: (N,), 0 is Irrelevant. best: (N,), the step with the highest score. scores: (N,), that score; a sample with
    a score below the threshold is predicted as 0. f1: ``binary`` is the F1 of Irrelevant against all steps; ``macro``
    is the mean over the labels of each group (recording), then over groups. The candidate thresholds are the scores
    and +inf. The smallest threshold wins a tie; F1 that differ by less than ``TIED`` are equal.
    """
    candidates = np.append(np.unique(scores), np.inf)
    if f1 == "binary":
        order = np.sort(scores)
        irrelevant = np.sort(scores[labels == 0])
        true = np.searchsorted(irrelevant, candidates)
        predicted = np.searchsorted(order, candidates)
        values = 2 * true / np.maximum(predicted + irrelevant.size, 1)
    else:
        values = np.array([_macro_f1(labels, np.where(scores < t, 0, best), groups) for t in candidates])
    index = int(np.argmax(values > values.max() - TIED))
    return float(candidates[index]), float(values[index])


def _macro_f1(labels: NDArray[np.int64], predictions: NDArray[np.int64], groups: NDArray[np.int64]) -> float:
    means = []
    for group in np.unique(groups):
        truth, guess = labels[groups == group], predictions[groups == group]
        size = int(max(truth.max(), guess.max())) + 1
        hits = np.bincount(truth[truth == guess], minlength=size)
        total = np.bincount(truth, minlength=size) + np.bincount(guess, minlength=size)
        means.append((2 * hits[total > 0] / total[total > 0]).mean())
    return float(np.mean(means))

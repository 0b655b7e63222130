"""Accuracy."""

import numpy as np
from numpy.typing import NDArray


def accuracy(labels: NDArray[np.int64], predictions: NDArray[np.int64], *, n_classes: int) -> float:
    """Return the fraction of correct predictions, in [0, 1].

    labels: (N,) in [0, n_classes). predictions: (N,) below n_classes; -1 is a uniform guess, which scores its
    expectation 1 / n_classes; lower values are wrong. Label 0 counts like any other, as in Spacewalk-18's released
    evaluation. Raises ValueError if N is 0.
    """
    if not labels.size:
        raise ValueError("accuracy of no samples is undefined")
    return float(np.where(predictions == -1, 1 / n_classes, predictions == labels).mean())

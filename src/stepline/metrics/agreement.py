"""Agreement of annotators who label the same units, with any number of annotators per unit."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import nan
from statistics import fmean

Units = Sequence[Sequence[Hashable]]
"""The labels of each unit, in any order. Units with fewer than two labels are ignored."""


def unanimity(units: Units) -> float:
    """Return the fraction of units on which all annotators agree, in [0, 1]; NaN if no unit has two labels."""
    return _mean(len(set(labels)) == 1 for labels in _paired(units))


def pairwise_agreement(units: Units) -> float:
    """Return the fraction of annotator pairs that agree, averaged over units, in [0, 1]; NaN if no unit has two labels.

    This is the observed agreement of Fleiss (1971).
    """
    return _mean(1 - _disagreement(labels) for labels in _paired(units))


def krippendorff_alpha(units: Units) -> float:
    """Return Krippendorff's alpha for nominal labels: 1 is full agreement, 0 is chance, negative is below chance.

    NaN if it is undefined: no unit has two labels, or all labels are equal.
    Krippendorff (2011), Computing Krippendorff's Alpha-Reliability.
    """
    paired = _paired(units)
    counts = Counter(label for labels in paired for label in labels)
    if len(counts) < 2:
        return nan
    observed = sum(len(labels) * _disagreement(labels) for labels in paired) / counts.total()
    return 1 - observed / _disagreement(list(counts.elements()))


def _paired(units: Units) -> list[Sequence[Hashable]]:
    return [labels for labels in units if len(labels) > 1]


def _disagreement(labels: Sequence[Hashable]) -> float:
    """Return the fraction of pairs with different labels."""
    n = len(labels)
    return 1 - sum(count * (count - 1) for count in Counter(labels).values()) / (n * (n - 1))


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return fmean(found) if found else nan

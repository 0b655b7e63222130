"""How far annotators agree who label the same units, any number of them on each."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from math import nan
from statistics import fmean

Units = Sequence[Sequence[Hashable]]
"""The labels that each unit was given, in any order. A unit with fewer than two says nothing of agreement."""


def unanimity(units: Units) -> float:
    """Return the share of units on which all agree, in [0, 1]; NaN where no unit has two labels."""
    return _mean(len(set(labels)) == 1 for labels in _paired(units))


def pairwise_agreement(units: Units) -> float:
    """Return the share of a unit's pairs of annotators that agree, mean over units, in [0, 1]; NaN as above.

    It is the observed agreement of Fleiss (1971).
    """
    return _mean(1 - _disagreement(labels) for labels in _paired(units))


def krippendorff_alpha(units: Units) -> float:
    """Return Krippendorff's alpha of nominal labels: 1 is agreement, 0 what chance gives, below 0 less.

    NaN where it is not defined: no unit has two labels, or all labels are the same.
    (Krippendorff 2011, Computing Krippendorff's Alpha-Reliability.)
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
    """Return the share of pairs of different labels."""
    n = len(labels)
    return 1 - sum(count * (count - 1) for count in Counter(labels).values()) / (n * (n - 1))


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return fmean(found) if found else nan

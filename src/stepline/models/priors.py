"""What training segments say about the step at a place of a recording: blind baselines of step recognition."""

from collections import Counter
from collections.abc import Hashable, Sequence
from statistics import fmean
from typing import Generic, TypeVar

Label = TypeVar("Label", bound=Hashable)

PARTS = 20
"""The number of equal parts of a recording in which ``likeliest`` counts labels."""


class Priors(Generic[Label]):
    """Counts of the labels of N training segments, N >= 1, and of their places.

    A place is the middle of a segment, from 0 (the start of its recording) to 1. If labels are equal, the first in
    ``labels`` is preferred.
    """

    def __init__(self, labels: Sequence[Label], places: Sequence[float]) -> None:
        self.counts = Counter(labels)
        self.by_part: dict[int, Counter[Label]] = {}
        found: dict[Label, list[float]] = {}
        for label, place in zip(labels, places, strict=True):
            found.setdefault(label, []).append(place)
            self.by_part.setdefault(_part(place, PARTS), Counter())[label] += 1
        self.order = sorted(found, key=lambda label: fmean(found[label]))

    def most_frequent(self, _place: float) -> Label:
        """Return the most frequent label."""
        return max(self.counts, key=self.counts.__getitem__)

    def in_order(self, place: float) -> Label:
        """Return the label of a place if each recording has one equal part per label, in the order of mean places."""
        return self.order[_part(place, len(self.order))]

    def likeliest(self, place: float) -> Label:
        """Return the most frequent label of the same of ``PARTS`` equal parts of the training recordings."""
        return max(self.counts, key=self.by_part.get(_part(place, PARTS), Counter()).__getitem__)


def _part(place: float, parts: int) -> int:
    return min(int(place * parts), parts - 1)

"""Inputs of PSS methods: one data set's annotation and the features of an entry."""

from collections.abc import Iterable
from functools import cached_property

from stepline.benchmarks.pss.benchmark import Pss
from stepline.benchmarks.pss.words import Words
from stepline.datasets import pss
from stepline.datasets.pss import Procedure
from stepline.runs.inputs import Inputs


class PssInputs(Inputs[Pss]):
    """The inputs of an entry on one data set."""

    def load(self, split: str) -> Iterable[Procedure]:
        """Return the annotated videos of a split."""
        return pss.load(self.release, split).values()  # type: ignore[arg-type]

    @cached_property
    def words(self) -> Words:
        """The vocabulary of captions."""
        if self.options["vocabulary"] == "released":
            return Words.released(self.release)
        return Words.counted(sentence for each in self.used("train") for sentence in each.sentences)

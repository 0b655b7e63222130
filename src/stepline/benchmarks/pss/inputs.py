"""What methods of PSS read: one data set's annotation and the features of an entry."""

import atexit
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import cached_property

from stepline.benchmarks.pss.benchmark import Pss
from stepline.benchmarks.pss.words import Words
from stepline.datasets import pss
from stepline.datasets.pss import Procedure
from stepline.metrics.captions import Scorer, bleu, cider, meteor_stem, rouge_l
from stepline.metrics.meteor import Meteor
from stepline.runs.inputs import Inputs


class PssInputs(Inputs[Pss]):
    """One data set as an entry sees it."""

    def load(self, split: str) -> Iterable[Procedure]:
        """Return the annotated videos of a split."""
        return pss.load(self.release, split).values()  # type: ignore[arg-type]

    @cached_property
    def words(self) -> Words:
        """The words that captions are learned with."""
        if self.options["vocabulary"] == "released":
            return Words.released(self.release)
        return Words.counted(sentence for each in self.used("train") for sentence in each.sentences)

    @cached_property
    def scorers(self) -> Mapping[str, Scorer]:
        """What scores sentences, by metric, the real METEOR where it is there; nothing where none are written."""
        if self.entry.kind.metrics:
            return {}
        scorers: dict[str, Scorer] = {"bleu4": bleu, "cider": cider, "rouge_l": rouge_l, "meteor_stem": meteor_stem}
        if not self.benchmark.missing_of("meteor"):
            stack = ExitStack()
            atexit.register(stack.close)
            scorers["meteor"] = stack.enter_context(Meteor()).score
        return scorers

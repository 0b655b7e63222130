"""Zero-shot TF-IDF of words without their endings: narration has "translates" where the crew says "translating"."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.methods import Chooser, SpacewalkMethod
from stepline.benchmarks.spacewalk.methods.tfidf import TfIdfChooser

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

ENDINGS = ("ings", "ing", "ers", "er", "ions", "ion", "ies", "ied", "es", "ed", "s", "e")
"""The first that fits is cut off."""


class Stems(SpacewalkMethod):
    """Zero-shot TF-IDF of stems."""

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the method at windows of ``context_s`` seconds."""
        assert context_s is not None
        return _Stems(inputs, context_s)


class _Stems(TfIdfChooser):
    def counter(self) -> "CountVectorizer":
        """Return what counts the stems of all words but English stop words."""
        from sklearn.feature_extraction.text import CountVectorizer

        words = super().counter().build_analyzer()
        return CountVectorizer(analyzer=lambda text: [stem(word) for word in words(text)])


@cache
def stem(word: str) -> str:
    """Return a word without its ending, where three letters are left, and without a doubled last letter."""
    ending = next((each for each in ENDINGS if word.endswith(each) and len(word) - len(each) >= 3), "")
    stemmed = word[: len(word) - len(ending)]
    return stemmed[:-1] if len(stemmed) > 3 and stemmed[-1] == stemmed[-2] else stemmed

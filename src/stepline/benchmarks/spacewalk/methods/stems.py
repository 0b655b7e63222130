"""Zero-shot TF-IDF of words without their endings: narration has "translates" where the crew says "translating"."""

from functools import cache
from typing import TYPE_CHECKING

from stepline.benchmarks.spacewalk.methods.tfidf import TfIdf

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

ENDINGS = ("ings", "ing", "ers", "er", "ions", "ion", "ies", "ied", "es", "ed", "s", "e")
"""The first that fits is cut off."""


class Stems(TfIdf):
    """Zero-shot TF-IDF of stems."""

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

"""Zero-shot TF-IDF of words without their endings: "translates" in narration matches the crew's "translating"."""

from functools import cache
from typing import TYPE_CHECKING

from stepline.benchmarks.spacewalk.methods.tfidf import TfIdf

if TYPE_CHECKING:
    from sklearn.feature_extraction.text import CountVectorizer

ENDINGS = ("ings", "ing", "ers", "er", "ions", "ion", "ies", "ied", "es", "ed", "s", "e")
"""The first ending that fits is removed."""


class Stems(TfIdf):
    """Zero-shot TF-IDF of stems."""

    def counter(self) -> "CountVectorizer":
        """Return a vectoriser that counts the stems of all words except English stop words."""
        from sklearn.feature_extraction.text import CountVectorizer

        words = super().counter().build_analyzer()
        return CountVectorizer(analyzer=lambda text: [stem(word) for word in words(text)])


@cache
def stem(word: str) -> str:
    """Return a word without its ending, if at least three letters remain, and without a doubled last letter."""
    ending = next((each for each in ENDINGS if word.endswith(each) and len(word) - len(each) >= 3), "")
    stemmed = word[: len(word) - len(ending)]
    return stemmed[:-1] if len(stemmed) > 3 and stemmed[-1] == stemmed[-2] else stemmed

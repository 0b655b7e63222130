"""Word search in sentences with BM25 (Robertson and Zaragoza, 2009). The search page computes the same scores.

Words are not stemmed. Chinese, Japanese and Korean text is searched by pairs of characters, as in Lucene's CJKAnalyzer,
and other scripts without spaces between words too.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from math import log
from typing import Any

import numpy as np

from stepline.search.corpus import Corpus, Floats, Places

NAME = "words"
SATURATION, LENGTH = 1.2, 0.75
"""The usual values of k1 and b of BM25."""
UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e4e\u0e50-\u0e59\u0e81-\u0edf\u1000-\u1049\u1050-\u109f\u1780-\u17d3\u17d7\u17dc\u17dd\u17e0-\u17e9"
    "\u3005-\u3007\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f"
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u1100-\u11ff\uac00-\ud7af"
)
"""Thai, Lao, Myanmar, Khmer, Hiragana, Katakana, Han and Hangul characters, for a set of a regular expression."""


def words(text: str) -> list[str]:
    """Return the words of a text in lower case: runs of letters, digits, combining marks and underscores.

    A run of ``UNSPACED`` characters is replaced by its overlapping pairs.
    """
    return [word for run in _runs().finditer(text.lower()) for word in _pairs(*run.groups())]


def _pairs(unspaced: str | None, word: str | None) -> list[str]:
    if not unspaced or len(unspaced) == 1:
        return [unspaced or word or ""]
    return [unspaced[place : place + 2] for place in range(len(unspaced) - 1)]


@cache
def _runs() -> re.Pattern[str]:
    r"""Return a pattern whose groups are a run of ``UNSPACED`` characters and another word; ``\w`` lacks the marks."""
    planes = (*range(0x300, 0x20000), *range(0xE0100, 0xE01F0))
    marks = "".join(chr(code) for code in planes if unicodedata.category(chr(code)).startswith("M"))
    return re.compile(f"([{UNSPACED}]+)|((?:(?![{UNSPACED}])[\\w{marks}])+)")


@dataclass(frozen=True)
class Vocabulary:
    """The words of N sentences. The vector of a text contains the inverse document frequency of each of its words.

    weights: (K,), ln(1 + (N - n + 0.5) / (n + 0.5)) for a word in n sentences.
    """

    number: dict[str, int]
    weights: Floats

    def tokens(self, text: str) -> list[int]:
        """Return the indices of the known words of ``text``."""
        return [self.number[word] for word in words(text) if word in self.number]

    def query(self, text: str) -> Floats:
        """Return the (K,) vector of a text; repeated words count once."""
        vector = np.zeros(len(self.number))
        chosen = [*{*self.tokens(text)}]
        vector[chosen] = self.weights[chosen]
        return vector

    def unknown(self, text: str) -> tuple[str, ...]:
        """Return the words of ``text`` that occur in no sentence."""
        return tuple(dict.fromkeys(word for word in words(text) if word not in self.number))


class WordCorpus(Corpus):
    """A corpus of sparse rows; rows without a word of the query are not returned."""

    least = 0.0

    @property
    def _is_large(self) -> bool:
        return False

    @cached_property
    def _matrix(self) -> Any:
        from scipy.sparse import vstack

        return vstack(self.parts, format="csr")

    def taken(self, rows: Places) -> Any:
        """Return the given rows as a sparse matrix."""
        return self._matrix[rows]

    @cached_property
    def _means(self) -> Any:
        from scipy.sparse import csr_matrix

        lengths = np.array(self.lengths)
        values = np.repeat(1 / lengths, lengths)
        averages = csr_matrix((values, np.arange(len(values)), np.cumsum([0, *lengths])))
        return averages @ self._matrix


def vocabulary(texts: Sequence[str]) -> Vocabulary:
    """Return the vocabulary of sentences, in order of first occurrence."""
    frequency = Counter(word for text in texts for word in dict.fromkeys(words(text)))
    counts = np.array([*frequency.values()], np.float64)
    number = {word: place for place, word in enumerate(frequency)}
    return Vocabulary(number, np.array([log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for n in counts]))


def rows(texts: Sequence[str], known: Vocabulary) -> Any:
    """Return a sparse (N, K) matrix: the frequency of each word in a sentence, saturated and scaled by length."""
    from scipy.sparse import csr_matrix

    counted = [Counter(words(text)) for text in texts]
    lengths = [sum(each.values()) for each in counted]
    mean = sum(lengths) / len(lengths)
    values: list[float] = []
    for counts, length in zip(counted, lengths, strict=True):
        scale = SATURATION * (1 - LENGTH + LENGTH * length / (mean or 1))
        values += [n * (SATURATION + 1) / (n + scale) for n in counts.values()]
    columns = [known.number[word] for counts in counted for word in counts]
    ends = np.cumsum([0, *map(len, counted)])
    shape = len(texts), len(known.number)
    return csr_matrix((np.array(values, np.float64), np.array(columns, np.int64), ends), shape=shape)

"""Encoding of sentences as ids of a vocabulary, and decoding."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stepline.datasets.pss import vocabulary

UNKNOWN = "UNK"
LEAST = 2
"""The minimum count of a word in a vocabulary, as in PDVC's."""
MARKS = ',:!_;-.?/"\\'
"""The punctuation at which PDVC's vocabularies split words."""


@dataclass(frozen=True)
class Words:
    """The vocabulary of one data set. ids: word -> id, from 1; 0 marks the start and end of a sentence and padding."""

    ids: Mapping[str, int]

    @classmethod
    def released(cls, dataset: str) -> "Words":
        """Return the released vocabulary; an id for unknown words is added if it has none."""
        known = vocabulary(dataset)
        return cls({UNKNOWN: max(known.values()) + 1} | known)

    @classmethod
    def counted(cls, sentences: Iterable[str]) -> "Words":
        """Return the vocabulary of words with a count of at least 2 in the sentences, sorted, then the unknown word."""
        counts = Counter(word for sentence in sentences for word in _bare(sentence))
        known = sorted(word for word, number in counts.items() if number >= LEAST)
        return cls({word: number for number, word in enumerate([*known, UNKNOWN], 1)})

    @property
    def size(self) -> int:
        """The largest id."""
        return max(self.ids.values())

    def encode(self, sentence: str, longest: int) -> list[int]:
        """Return the ids of a sentence's first ``longest`` words.

        Words are separated by spaces, lower-cased and stripped of punctuation; unknown words are split at punctuation.
        """
        words: list[str] = []
        for word in _bare(sentence):
            words += [word] if word in self.ids else filter(None, re.split(f"[{re.escape(MARKS)}()]+", word))
        return [self.ids.get(word, self.ids[UNKNOWN]) for word in words[:longest]]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the sentence with these word ids."""
        by_id = {number: word for word, number in self.ids.items()}
        return " ".join(by_id[number] for number in ids)


def _bare(sentence: str) -> list[str]:
    """Return the words of a sentence, lower-cased and stripped of punctuation."""
    return [bare for word in sentence.lower().split() if (bare := word.strip(MARKS + "()"))]

"""Sentences as ids of a released vocabulary, and back."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stepline.datasets.pss import vocabulary

UNKNOWN = "UNK"
LEAST = 2
"""How often a word of a vocabulary stands in what it is counted on, as in PDVC's."""
MARKS = ',:!_;-.?/"\\'
"""What PDVC's vocabularies cut words at."""


@dataclass(frozen=True)
class Words:
    """The words of one data set. ids: of each word, from 1; 0 begins and ends a sentence and fills it up."""

    ids: Mapping[str, int]

    @classmethod
    def released(cls, dataset: str) -> "Words":
        """Return the released vocabulary, with an id for unknown words where it has none."""
        known = vocabulary(dataset)
        return cls({UNKNOWN: max(known.values()) + 1} | known)

    @classmethod
    def counted(cls, sentences: Iterable[str]) -> "Words":
        """Return the words that stand at least twice in some sentences, by their characters, then the unknown one."""
        counts = Counter(word for sentence in sentences for word in _bare(sentence))
        known = sorted(word for word, number in counts.items() if number >= LEAST)
        return cls({word: number for number, word in enumerate([*known, UNKNOWN], 1)})

    @property
    def size(self) -> int:
        """The largest id."""
        return max(self.ids.values())

    def encode(self, sentence: str, longest: int) -> list[int]:
        """Return the ids of a sentence's first ``longest`` words.

        Words are small letters between spaces, without marks around them; one that is not known is cut at its marks.
        """
        words: list[str] = []
        for word in _bare(sentence):
            words += [word] if word in self.ids else filter(None, re.split(f"[{re.escape(MARKS)}()]+", word))
        return [self.ids.get(word, self.ids[UNKNOWN]) for word in words[:longest]]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the sentence of some ids."""
        by_id = {number: word for word, number in self.ids.items()}
        return " ".join(by_id[number] for number in ids)


def _bare(sentence: str) -> list[str]:
    """Return the words of a sentence in small letters, without marks around them."""
    return [bare for word in sentence.lower().split() if (bare := word.strip(MARKS + "()"))]

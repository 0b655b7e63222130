"""Sentences as ids of a released vocabulary, and back."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from stepline.datasets.pss import vocabulary

UNKNOWN = "UNK"
MARKS = ',:!_;-.?/"\\'
"""What PDVC's vocabularies cut words at."""


@dataclass(frozen=True)
class Words:
    """The words of one data set. ids: of each word, from 1; 0 begins and ends a sentence and fills it up."""

    ids: Mapping[str, int]

    @classmethod
    def of(cls, dataset: str) -> "Words":
        """Return the released vocabulary, with an id for unknown words where it has none."""
        known = vocabulary(dataset)
        return cls({UNKNOWN: max(known.values()) + 1} | known)

    @property
    def size(self) -> int:
        """The largest id."""
        return max(self.ids.values())

    def encode(self, sentence: str, longest: int) -> list[int]:
        """Return the ids of a sentence's first ``longest`` words.

        Words are small letters between spaces, without marks around them; one that is not known is cut at its marks.
        """
        words: list[str] = []
        for word in sentence.lower().split():
            bare = word.strip(MARKS + "()")
            words += [bare] if bare in self.ids else filter(None, re.split(f"[{re.escape(MARKS)}()]+", word))
        return [self.ids.get(word, self.ids[UNKNOWN]) for word in words[:longest]]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the sentence of some ids."""
        by_id = {number: word for word, number in self.ids.items()}
        return " ".join(by_id[number] for number in ids)

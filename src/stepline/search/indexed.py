"""A corpus whose matches are found by an index."""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np

from stepline.search.corpus import Corpus, Floats, Places, scores
from stepline.search.index import LEAST_RECALL, Index

WIDER = (1, 4, 16)
"""The factors by which more candidates are requested if there are too few matches among them."""


@dataclass(frozen=True)
class IndexedCorpus(Corpus):
    """Rows that are read only where the index finds candidates, and of videos that are shown.

    check: compares the rows of videos, of all if None, with their sha256.
    """

    index: Index
    check: Callable[[Iterable[str] | None], None]

    def prepare(self) -> None:
        """Compute the values that all queries share, without reading rows."""
        self.index.prepare()
        _ = self._means, self._names, self._starts

    @cached_property
    def exact(self) -> Corpus:
        """The corpus that compares all rows."""
        self.check(None)
        return Corpus(**shallow(self))

    def refusal(self, kind: str, similarity: str) -> str:
        """Return why the index is not used for a kind of query, "" if it is."""
        recall = self.index.recalls.get(kind)
        if similarity != self.similarity:
            return f"it compares by {self.similarity}, not by {similarity}"
        if recall is None:
            return f"its recall for {kind} was not measured"
        return f"{recall}, is below {LEAST_RECALL}" if recall.at_10 < LEAST_RECALL else ""

    def only(self, videos: Collection[str]) -> Corpus:
        """Return the corpus of the given videos, whose rows are all compared."""
        self.check(videos)
        return Corpus(**shallow(super().only(videos)))

    def vector(self, row: int) -> Floats:
        """Return a row in double precision."""
        self.check([self.place(row)[0]])
        return super().vector(row)

    def sampled(self, query: Floats) -> Floats:
        """Return the exact similarities of the sampled rows."""
        return scores(self.index.sample, query, self.similarity)

    def near(self, query: Floats, top: int, window_s: float, kind: str) -> list[tuple[int, float]] | None:
        """Return ``top`` matches as ``matches`` does, from the candidates of the index; None if there are too few.

        Each result is a match: its row is compared with all rows within ``window_s`` in its video. If one of these is
        better than a candidate, it takes the candidate's place.
        """
        for wider in WIDER:
            count = wider * self.index.recalls[kind].look * top
            if count < len(self.spans_s):
                found = self._peaks(self.index.candidates(query, count, kind), query, top, window_s)
                if len(found) == top:
                    return found
        return None

    def _peaks(self, rows: Places, query: Floats, top: int, window_s: float) -> list[tuple[int, float]]:
        def key(row: int, score: float) -> tuple[float, float, int, int]:
            return -score, float(self.spans_s[row, 0]), int(self._names[self._video(row)]), row

        waiting = [key(*each) for each in zip(rows.tolist(), self.scores(rows, query).tolist(), strict=True)]
        heapify(waiting)
        seen = {*rows.tolist()}
        found: list[tuple[float, float, int, int]] = []
        while waiting and len(found) < top:
            first = heappop(waiting)
            if any(each[2] == first[2] and abs(each[1] - first[1]) < window_s for each in found):
                continue
            near = self._within(first[-1], window_s)
            best = min(map(key, near.tolist(), self.scores(near, query).tolist()))
            if best >= first:
                found.append(first)
            elif best[-1] not in seen:
                seen.add(best[-1])
                heappush(waiting, best)
        return [(row, -negative) for negative, _, _, row in sorted(found)]

    def _within(self, row: int, window_s: float) -> Places:
        """Return the row and the rows less than ``window_s`` away in its video."""
        numbers = self.numbers(self._video(row))
        distance_s = np.abs(self.spans_s[numbers, 0] - self.spans_s[row, 0])
        near: Places = numbers[(distance_s < window_s) | (numbers == row)]
        return near

    @cached_property
    def _means(self) -> Floats:
        means = self.index.means
        if self.similarity != "cosine":
            return means
        lengths = np.linalg.norm(means, axis=1, keepdims=True)
        scaled: Floats = np.divide(means, lengths, out=np.zeros_like(means), where=lengths > 0)
        return scaled


def shallow(corpus: Corpus) -> dict[str, Any]:
    """Return the fields of a corpus without an index."""
    return {field.name: getattr(corpus, field.name) for field in fields(Corpus)}

"""The rows of all videos, and what of them is most like a vector: the numeric part of a search."""

import sys
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar, Self
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from stepline.models.moments import pooled

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

AT_ONCE = 1024
"""Rows that are compared together."""
SMALL = 4096
"""Up to so many rows are all compared exactly, for which torch is not imported."""
FIRST_LOOK = 64
"""Rows for each match that is asked for, whose scores are computed exactly at first."""


@dataclass(frozen=True)
class Corpus:
    """N rows of V videos.

    videos: their ids. parts: arrays (n, D) that hold the rows one after the other, each those of whole videos; they may
    be mapped files. lengths: (V,), how many rows a video has, at least one. spans_s: (N, 2), start and end of what a
    row stands for, in seconds. similarity: ``cosine`` or ``dot product``. pooled_rows: of how many of its rows a video
    is the mean, see ``stepline.models.moments.pooled``; 0 is all.

    Scores have six decimals, so that an order does not hang on how sums are rounded.
    """

    videos: Sequence[str]
    parts: Sequence[NDArray[np.floating]]
    lengths: Sequence[int]
    spans_s: Floats
    similarity: str
    pooled_rows: int

    least: ClassVar[float] = -inf
    """What is found has a higher score."""

    def __post_init__(self) -> None:
        """Compute what all questions need."""
        _ = self._means, self._names, self._starts, self._is_large and self._scales

    def ranking(self, query: Floats, top: int) -> list[tuple[int, float]]:
        """Return the ``top`` videos by the similarity of their means, with it; of equal ones the first id."""
        length = float(np.linalg.norm(query)) if self.similarity == "cosine" else 1.0
        scores = (_products(self._means, query) / (length or 1.0)).round(6)
        order = np.lexsort((self._names, -scores))[:top]
        return list(zip(order.tolist(), scores[order].tolist(), strict=True))

    def whole(self, query: Floats) -> Floats:
        """Return the (N,) similarities of all rows; of more than 4,096 rows in single precision, see ``_error``."""
        return self._rough(query) if self._is_large else self.scores(np.arange(len(self.spans_s)), query)

    def matches(self, query: Floats, whole: Floats, top: int, window_s: float) -> list[tuple[int, float]]:
        """Return the ``top`` rows that none less than ``window_s`` away in the same video exceeds, with their scores.

        whole: see the method. Of equal ones in a window the earlier counts. Of equal matches the earlier comes first,
        then that of the video whose id does.
        """
        rows, count = np.arange(len(whole)), FIRST_LOOK * top
        if not self._is_large:
            return self._apart(rows, whole, window_s, top, -inf)
        while count < len(whole):
            least = float(np.partition(whole, len(whole) - count)[len(whole) - count])
            near = np.flatnonzero(whole >= least)
            found = self._apart(near, self.scores(near, query), window_s, top, least + self._error(query))
            if len(found) == top:
                return found
            count *= 4
        return self._apart(rows, self.scores(rows, query), window_s, top, -inf)

    def scores(self, rows: Places, query: Floats) -> Floats:
        """Return the similarities of some rows."""
        blocks = (self._taken(rows[first : first + AT_ONCE]) for first in range(0, len(rows), AT_ONCE))
        return np.concatenate([_scores(block, query, self.similarity) for block in blocks])

    def numbers(self, video: int) -> Places:
        """Return the numbers of a video's rows."""
        return np.arange(self._offsets[video], self._offsets[video + 1])

    def rows(self, video: int) -> NDArray[np.floating]:
        """Return the (T, D) rows of a video."""
        part = int(np.searchsorted(self._starts, self._offsets[video], side="right")) - 1
        first = int(self._offsets[video] - self._starts[part])
        return self.parts[part][first : first + self.lengths[video]]

    def is_each_second(self, video: int) -> bool:
        """Return whether a video's rows stand for its seconds, from 0 on."""
        starts_s = self.spans_s[self.numbers(video), 0]
        return bool((starts_s == np.arange(len(starts_s))).all())

    def at(self, video: str, time_s: float) -> int:
        """Return the number of the last row of a video that starts at or before a time, else of its first."""
        numbers = self.numbers(self.videos.index(video))
        before = np.flatnonzero(self.spans_s[numbers, 0] <= time_s)
        return int(numbers[before[-1] if len(before) else 0])

    def vector(self, row: int) -> Floats:
        """Return a row in double precision."""
        vector: Floats = self._taken(np.array([row]))[0]
        return vector

    def only(self, videos: Collection[str]) -> Self:
        """Return the corpus of some of the videos."""
        chosen = [number for number, video in enumerate(self.videos) if video in videos]
        return replace(
            self,
            videos=[self.videos[number] for number in chosen],
            parts=[self.rows(number) for number in chosen],
            lengths=[self.lengths[number] for number in chosen],
            spans_s=np.concatenate([self.spans_s[self.numbers(number)] for number in chosen]),
        )

    def place(self, row: int) -> tuple[str, int]:
        """Return the video of a row, and which of its rows it is."""
        video = int(np.searchsorted(self._offsets, row, side="right")) - 1
        return self.videos[video], int(row - self._offsets[video])

    def _apart(self, rows: Places, scores: Floats, window_s: float, top: int, sure: float) -> list[tuple[int, float]]:
        """Return the matches among rows that hold all whose score is ``sure`` or more, and of those alone."""
        videos = np.searchsorted(self._offsets, rows, side="right") - 1
        order = np.lexsort((self._names[videos], self.spans_s[rows, 0], -scores))
        order = order[scores[order] >= sure]
        better: dict[int, list[float]] = {}
        found: list[tuple[int, float]] = []
        listed = (each[order].tolist() for each in (rows, scores, videos, self.spans_s[rows, 0]))
        for row, score, video, time_s in zip(*listed, strict=True):
            times_s = better.setdefault(video, [])
            place = bisect_left(times_s, time_s)
            near = times_s[max(place - 1, 0) : place + 1]
            times_s.insert(place, time_s)
            if not any(time_s - window_s < other_s < time_s + window_s for other_s in near):
                found.append((row, score))
                if len(found) == top:
                    break
        return found

    def _rough(self, query: Floats) -> Floats:
        """Return the (N,) similarities in single precision, ``_error`` or less from the exact ones."""
        import torch

        vector = torch.from_numpy(query.astype(np.float32))
        scores = torch.empty(len(self.spans_s))
        first = 0
        with one_thread():
            for block in self._blocks():
                torch.mv(block.float(), vector, out=scores[first : first + len(block)])
                first += len(block)
        if self.similarity == "cosine":
            scores *= torch.from_numpy(self._scales / max(float(np.linalg.norm(query)), 1e-30))
        array: Floats = scores.double().numpy()
        return array

    def _error(self, query: Floats) -> float:
        """Return what a rough score and the exact one differ by at most: D roundings of the product of lengths."""
        longest = 1.0 if self.similarity == "cosine" else float(self._norms.max() * np.linalg.norm(query))
        return 2.0**-23 * (len(query) + 8) * longest + 1e-6

    def _blocks(self) -> Any:
        return (part[first : first + AT_ONCE] for part in self._tensors for first in range(0, len(part), AT_ONCE))

    def _taken(self, rows: Places) -> Floats:
        """Return some rows in double precision."""
        part = np.searchsorted(self._starts, rows, side="right") - 1
        taken = np.empty((len(rows), self.parts[0].shape[1]))
        for each in np.unique(part):
            chosen = part == each
            taken[chosen] = self.parts[each][rows[chosen] - self._starts[each]]
        return taken

    @property
    def _is_large(self) -> bool:
        return len(self.spans_s) > SMALL

    @cached_property
    def _tensors(self) -> list["torch.Tensor"]:
        import torch

        with catch_warnings():
            simplefilter("ignore", UserWarning)  # mapped files cannot be written to, and are not
            return [torch.from_numpy(part) for part in self.parts]

    @cached_property
    def _starts(self) -> Places:
        return np.cumsum([0, *map(len, self.parts[:-1])])

    @cached_property
    def _offsets(self) -> Places:
        return np.cumsum([0, *self.lengths])

    @cached_property
    def _norms(self) -> NDArray[np.float32]:
        norms: NDArray[np.float32] = np.concatenate([block.float().norm(dim=1).numpy() for block in self._blocks()])
        return norms

    @cached_property
    def _scales(self) -> NDArray[np.float32]:
        return np.divide(1, self._norms, out=np.zeros_like(self._norms), where=self._norms > 0)

    @cached_property
    def _means(self) -> Floats:
        means = np.empty((len(self.videos), self.parts[0].shape[1]))
        for video, length in enumerate(self.lengths):
            means[video] = pooled(self.rows(video), min(self.pooled_rows or length, length), self.similarity)
        return means

    @cached_property
    def _names(self) -> Places:
        """The place of each video in the order of ids."""
        return np.argsort(np.argsort(np.array(self.videos)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch, where it is imported, use one thread: more gain little in milliseconds, and wait for each other."""
    if "torch" not in sys.modules:
        yield
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _scores(rows: Floats, query: Floats, similarity: str) -> Floats:
    """Return the (n,) similarities of (n, D) rows and a (D,) vector; the cosine with a row of zeros is 0."""
    scores = _products(rows, query)
    if similarity == "cosine":
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
        scores = np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0)
    return scores.round(6)


def _products(rows: Floats, query: Floats) -> Floats:
    """Return the (n,) products, without the threads of a BLAS; see ``one_thread``. rows: sparse ones too."""
    products: Floats = np.einsum("nd,d->n", rows, query) if isinstance(rows, np.ndarray) else rows @ query
    return products

"""The numeric part of a search: the rows of all videos and their similarity to a query vector."""

import sys
from bisect import bisect_left
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar
from warnings import catch_warnings, simplefilter

import numpy as np
from numpy.typing import NDArray

from stepline.models.moments import pooled

if TYPE_CHECKING:
    import torch

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

AT_ONCE = 1024
"""Number of rows per block of a comparison."""
SMALL = 4096
"""Up to this number of rows, all scores are computed exactly and torch is not imported."""
FIRST_LOOK = 64
"""Number of rows per requested match whose exact scores are computed first."""


@dataclass(frozen=True)
class Corpus:
    """N rows of V videos.

    videos: the video ids. parts: arrays (n, D) with consecutive rows, each with the rows of complete videos; they can
    be memory-mapped. lengths: (V,), the number of rows of each video, at least one. spans_s: (N, 2), start and end of
    each row in seconds. similarity: ``cosine`` or ``dot product``. pooled_rows: the number of rows in the mean of a
    video, see ``stepline.models.moments.pooled``; 0 means all.

    Scores are rounded to six decimals, so that the order does not depend on the rounding of sums.
    """

    videos: Sequence[str]
    parts: Sequence[NDArray[np.floating]]
    lengths: Sequence[int]
    spans_s: Floats
    similarity: str
    pooled_rows: int

    least: ClassVar[float] = -inf
    """Results must have a higher score."""

    def prepare(self) -> None:
        """Compute the values that all queries share; otherwise the first query computes them."""
        _ = self._means, self._names, self._starts, self._is_large and self._scales

    @property
    def exact(self) -> "Corpus":
        """The corpus that compares all rows."""
        return self

    def ranking(self, query: Floats, top: int) -> list[tuple[int, float]]:
        """Return the ``top`` videos and their scores, by the similarity of their means; ties are sorted by id."""
        length = float(np.linalg.norm(query)) if self.similarity == "cosine" else 1.0
        scores = (_products(self._means, query) / (length or 1.0)).round(6)
        order = np.lexsort((self._names, -scores))[:top]
        return list(zip(order.tolist(), scores[order].tolist(), strict=True))

    def whole(self, query: Floats) -> Floats:
        """Return the (N,) similarities of all rows, in single precision for more than 4,096 rows (see ``_error``)."""
        return self._rough(query) if self._is_large else self.scores(np.arange(len(self.spans_s)), query)

    def matches(self, query: Floats, whole: Floats, top: int, window_s: float) -> list[tuple[int, float]]:
        """Return the ``top`` matches with their scores: rows without a better row within ``window_s`` in their video.

        whole: the result of the method ``whole``. Of equal rows in a window, the earlier one is the match. Equal
        matches are sorted by time, then by video id.
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
        """Return the exact similarities of the given rows."""
        blocks = (self.taken(rows[first : first + AT_ONCE]) for first in range(0, len(rows), AT_ONCE))
        return np.concatenate([scores(block, query, self.similarity) for block in blocks])

    def numbers(self, video: int) -> Places:
        """Return the indices of a video's rows."""
        return np.arange(self._offsets[video], self._offsets[video + 1])

    def rows(self, video: int) -> NDArray[np.floating]:
        """Return the (T, D) rows of a video."""
        part = int(np.searchsorted(self._starts, self._offsets[video], side="right")) - 1
        first = int(self._offsets[video] - self._starts[part])
        return self.parts[part][first : first + self.lengths[video]]

    def is_each_second(self, video: int) -> bool:
        """Return whether a video has one row per second, starting at 0 s."""
        starts_s = self.spans_s[self.numbers(video), 0]
        return bool((starts_s == np.arange(len(starts_s))).all())

    def at(self, video: str, time_s: float) -> int:
        """Return the index of the last row of a video that starts at or before a time, or of its first row."""
        numbers = self.numbers(self.videos.index(video))
        before = np.flatnonzero(self.spans_s[numbers, 0] <= time_s)
        return int(numbers[before[-1] if len(before) else 0])

    def vector(self, row: int) -> Floats:
        """Return a row in double precision."""
        vector: Floats = self.taken(np.array([row]))[0]
        return vector

    def taken(self, rows: Places) -> Floats:
        """Return the given rows in double precision."""
        part = np.searchsorted(self._starts, rows, side="right") - 1
        taken = np.empty((len(rows), self.parts[0].shape[1]))
        for each in np.unique(part):
            chosen = part == each
            taken[chosen] = self.parts[each][rows[chosen] - self._starts[each]]
        return taken

    def only(self, videos: Collection[str]) -> "Corpus":
        """Return the corpus of the given videos."""
        chosen = [number for number, video in enumerate(self.videos) if video in videos]
        return replace(
            self,
            videos=[self.videos[number] for number in chosen],
            parts=[self.rows(number) for number in chosen],
            lengths=[self.lengths[number] for number in chosen],
            spans_s=np.concatenate([self.spans_s[self.numbers(number)] for number in chosen]),
        )

    def place(self, row: int) -> tuple[str, int]:
        """Return the video of a row, and the index of the row in the video."""
        video = self._video(row)
        return self.videos[video], int(row - self._offsets[video])

    def _video(self, row: int) -> int:
        """Return the index of a row's video."""
        return int(np.searchsorted(self._offsets, row, side="right")) - 1

    def _apart(self, rows: Places, scores: Floats, window_s: float, top: int, sure: float) -> list[tuple[int, float]]:
        """Return the matches among the rows with a score of at least ``sure``; ``rows`` must contain all such rows."""
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
        """Return the (N,) similarities in single precision, which differ from the exact ones by at most ``_error``."""
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
        """Return the largest difference between rough and exact scores: D roundings of the product of the norms."""
        longest = 1.0 if self.similarity == "cosine" else float(self._norms.max() * np.linalg.norm(query))
        return 2.0**-23 * (len(query) + 8) * longest + 1e-6

    def _blocks(self) -> Any:
        return (part[first : first + AT_ONCE] for part in self._tensors for first in range(0, len(part), AT_ONCE))

    @property
    def _is_large(self) -> bool:
        return len(self.spans_s) > SMALL

    @cached_property
    def _tensors(self) -> list["torch.Tensor"]:
        import torch

        with catch_warnings():
            simplefilter("ignore", UserWarning)  # mapped files are read-only and are only read
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
        """The rank of each video in the order of ids."""
        return np.argsort(np.argsort(np.array(self.videos)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit torch, if it is imported, to one thread: for tasks of milliseconds, more threads mostly wait."""
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


def scores(rows: Floats, query: Floats, similarity: str) -> Floats:
    """Return the (n,) similarities of (n, D) rows and a (D,) vector; the cosine with a zero row is 0."""
    scores = _products(rows, query)
    if similarity == "cosine":
        lengths = np.linalg.norm(rows, axis=1) * np.linalg.norm(query)
        scores = np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0)
    return scores.round(6)


def _products(rows: Floats, query: Floats) -> Floats:
    """Return the (n,) products without BLAS threads; see ``one_thread``. rows: dense or sparse."""
    products: Floats = np.einsum("nd,d->n", rows, query) if isinstance(rows, np.ndarray) else rows @ query
    return products

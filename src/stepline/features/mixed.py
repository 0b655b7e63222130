"""Batches with clips of several videos."""

from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepline.availability import Record
from stepline.features.cache import Coming, FeatureCache
from stepline.features.encoder import Encoder


class Waiting(NamedTuple):
    """A clip that waits for a batch, and the video's rows that it belongs to."""

    record: Record
    coming: Coming
    clip: NDArray[Any]
    shown: NDArray[np.bool_]


class Mixed:
    """Batches of clips from any video, in order of arrival. Their rows go to a cache.

    All batches have the same size; the last one is padded with zeros. So the shape of the network's input does not
    depend on a clip's position and neighbours, which differ from run to run.
    """

    def __init__(self, encoder: Encoder, cache: FeatureCache) -> None:
        self._encoder, self._cache = encoder, cache
        self._waiting: list[Waiting] = []

    def add(self, record: Record, clips: NDArray[Any], shown: NDArray[np.bool_]) -> int:
        """Add the next clips of a video; return its total number of rows. Raise the encoder's or cache's errors."""
        coming = self._cache.coming(record)
        assert coming is not None
        self._waiting += [Waiting(record, coming, *each) for each in zip(clips, shown, strict=True)]
        while len(self._waiting) >= self._encoder.batch_size:
            self._compute()
        return len(coming.begun.order)

    def rest(self) -> None:
        """Compute the waiting clips. Raise the encoder's or cache's errors."""
        if self._waiting:
            self._compute()

    def _compute(self) -> None:
        size = self._encoder.batch_size
        batch, self._waiting = self._waiting[:size], self._waiting[size:]
        clips, shown = (np.stack([getattr(each, name) for each in batch]) for name in ("clip", "shown"))
        more = size - len(batch)
        clips, shown = np.pad(clips, [(0, more)] + [(0, 0)] * 4), np.pad(shown, [(0, more), (0, 0)])
        rows = iter(self._encoder(clips, shown))
        for _, group in groupby(batch, key=lambda each: id(each.coming)):
            some = list(group)
            made = np.stack([next(rows) for _ in some])
            if self._cache.coming(some[0].record) is some[0].coming:
                self._cache.add(some[0].record, made)

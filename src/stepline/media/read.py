"""Readers: chosen frames of a video, each exactly the one that was asked for."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np

from stepline.media.decode import DamagedError, MissedKeyError, frames
from stepline.media.frame import DecodedFrame, Frame
from stepline.media.salvage import salvaged, salvaged_frames
from stepline.media.timeline import Indices, Timeline, scan

Made = TypeVar("Made")
SEEK_S = 10.0
"""A gap in what is asked for, from which on decoding starts again at a key frame behind it."""


class Reader(Protocol):
    """Path, timeline and ascending indices, which may repeat -> the frame of each index."""

    def __call__(self, path: Path, timeline: Timeline, indices: Indices, /, *, turned: bool) -> Iterator[Frame]:
        """Yield the frames; ``turned``: upright, else as they are stored."""


def pyav(path: Path, timeline: Timeline, indices: Indices, /, *, turned: bool = True) -> Iterator[Frame]:
    """Yield the frame of each index, bit by bit as decoding the whole file gives it.

    Frames that nothing is predicted from are not decoded where they are not asked for, and gaps of more than 10 s are
    jumped where the container allows it. indices: of frames that are not lost. Raises DamagedError where a frame does
    not come out as it should, MediaError where the file cannot be decoded that far.
    """
    if timeline.packets is not None:
        yield from _salvaged(path, timeline, indices, turned)
        return
    groups = _groups(timeline, indices)
    for number, group in enumerate(groups):
        before = np.searchsorted(timeline.keys, timeline.pts[group[0]], side="right") - 1
        key = int(timeline.keys[before]) if before > 0 else None
        try:
            yield from _chosen(path, timeline, group, key, turned)
        except MissedKeyError:
            yield from _chosen(path, timeline, np.concatenate(groups[number:]), None, turned)
            return


def timeline_of(path: Path) -> Timeline:
    """Return the timeline by packets; of a salvaged file where they do not tell. Raises MediaError."""
    try:
        return scan(path)
    except DamagedError:
        return salvaged(path)


def with_timeline(path: Path, make: Callable[[Timeline], Made]) -> Made:
    """Return ``make(timeline)``, with the timeline by packets; by decoding all where a frame is not as they announce.

    Raises MediaError where the file cannot be read.
    """
    try:
        return make(scan(path))
    except DamagedError:
        return make(salvaged(path))


def _groups(timeline: Timeline, indices: Indices) -> list[Indices]:
    gap = np.diff(timeline.t_s[indices]) > SEEK_S
    keyed = np.diff(np.searchsorted(timeline.keys, timeline.pts[indices], side="right")) > 0
    return np.split(indices, np.flatnonzero(gap & keyed) + 1)


def _chosen(path: Path, timeline: Timeline, indices: Indices, key: int | None, turned: bool) -> Iterator[Frame]:
    chosen = timeline.pts[indices].tolist()
    frame: DecodedFrame | None = None
    with closing(frames(path, wanted=set(chosen), key=key, turned=turned)) as decoded:
        for pts in chosen:
            while frame is None or frame.pts < pts:
                frame = next(decoded, None)
                if frame is None:
                    break
            if frame is None or frame.pts != pts:
                raise DamagedError(f"the frame at {float(pts * timeline.time_base):.3f} s cannot be decoded")
            yield frame


def _salvaged(path: Path, timeline: Timeline, indices: Indices, turned: bool) -> Iterator[Frame]:
    place, frame = -1, None
    with closing(salvaged_frames(path, timeline, turned=turned)) as decoded:
        for index in indices.tolist():
            while place < index:
                place, frame = next(decoded, (len(timeline.pts), None))
            if place != index or frame is None:
                raise DamagedError(f"the frame at {timeline.t_s[index]:.3f} s comes out no longer")
            yield frame

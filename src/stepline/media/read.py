"""Readers: selected frames of a video, each exactly the requested one."""

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
"""After a gap of more than this between requested frames, decoding restarts at a key frame after the gap."""


class Reader(Protocol):
    """Maps a path, its timeline and ascending indices, which may repeat, to the frame of each index."""

    def __call__(self, path: Path, timeline: Timeline, indices: Indices, /, *, turned: bool) -> Iterator[Frame]:
        """Yield the frames. turned: upright if True, otherwise as stored."""


def pyav(path: Path, timeline: Timeline, indices: Indices, /, *, turned: bool = True) -> Iterator[Frame]:
    """Yield the frame of each index, bit-identical to decoding the whole file.

    Frames that were not requested are not decoded if no other frame is predicted from them. Gaps of more than 10 s are
    skipped if the container can seek. indices: of frames that are not lost. Raises DamagedError if a frame is not
    decoded as expected, and MediaError if the file cannot be decoded that far.
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
    """Return the timeline from the packets, or from the salvaged file if they do not have it.

    Raises MediaError if the file cannot be read.
    """
    try:
        return scan(path)
    except DamagedError:
        return salvaged(path)


def with_timeline(path: Path, make: Callable[[Timeline], Made]) -> Made:
    """Return ``make(timeline)`` for the timeline from the packets, or from a full decode if frames do not match them.

    Raises MediaError if the file cannot be read.
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
                raise DamagedError(f"the frame at {timeline.t_s[index]:.3f} s can no longer be decoded")
            yield frame

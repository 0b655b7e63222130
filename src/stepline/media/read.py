"""Readers: chosen frames of a video, each exactly the one that was asked for."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import numpy as np

from stepline.media.decode import DecodedFrame, Frame, MediaError, MissedKeyError, frames
from stepline.media.timeline import Indices, Timeline, decoded, scan

Made = TypeVar("Made")
Reader = Callable[[Path, Timeline, Indices], Iterator[Frame]]
"""Path, timeline and ascending indices, which may repeat -> the frame of each index."""
SEEK_S = 10.0
"""A gap in what is asked for, from which on decoding starts again at a key frame behind it."""


class UnlistedFrameError(MediaError):
    """A frame that the packets announce and the decoder does not put out: take the timeline by decoding."""


def pyav(path: Path, timeline: Timeline, indices: Indices) -> Iterator[Frame]:
    """Yield the frame of each index, bit by bit as decoding the whole file gives it.

    Frames that nothing is predicted from are not decoded where they are not asked for, and gaps of more than 10 s are
    jumped where the container allows it. Raises UnlistedFrameError where a frame does not come out, MediaError where
    the file cannot be decoded that far.
    """
    groups = _groups(timeline, indices)
    for number, group in enumerate(groups):
        before = np.searchsorted(timeline.keys, timeline.pts[group[0]], side="right") - 1
        key = int(timeline.keys[before]) if before > 0 else None
        try:
            yield from _chosen(path, timeline, group, key)
        except MissedKeyError:
            yield from _chosen(path, timeline, np.concatenate(groups[number:]), None)
            return


def with_timeline(path: Path, make: Callable[[Timeline], Made]) -> Made:
    """Return ``make(timeline)``, with the timeline by packets; by decoding where a frame that they announce is absent.

    Raises MediaError where the file cannot be read.
    """
    try:
        return make(scan(path))
    except UnlistedFrameError:
        return make(decoded(path))


def _groups(timeline: Timeline, indices: Indices) -> list[Indices]:
    gap = np.diff(timeline.t_s[indices]) > SEEK_S
    keyed = np.diff(np.searchsorted(timeline.keys, timeline.pts[indices], side="right")) > 0
    return np.split(indices, np.flatnonzero(gap & keyed) + 1)


def _chosen(path: Path, timeline: Timeline, indices: Indices, key: int | None) -> Iterator[Frame]:
    chosen = timeline.pts[indices].tolist()
    frame: DecodedFrame | None = None
    with closing(frames(path, wanted=set(chosen), key=key)) as decoded:
        for pts in chosen:
            while frame is None or frame.pts < pts:
                frame = next(decoded, None)
                if frame is None:
                    break
            if frame is None or frame.pts != pts:
                raise UnlistedFrameError(f"the frame at {float(pts * timeline.time_base):.3f} s cannot be decoded")
            yield frame

"""The presentation times of a video's frames, and which frames stand for which times."""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stepline.media.decode import MediaError, Stream, frames, opened
from stepline.spec import FrameRule

Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Timeline:
    """When each frame of a video is shown.

    pts: (n,) ascending, in units of ``time_base``, from the start of the video stream. end: when the last frame is no
    longer shown, in the same units. keys: those of ``pts`` at which decoding can start.
    """

    pts: Indices
    time_base: Fraction
    end: int
    keys: Indices

    @property
    def t_s(self) -> NDArray[np.float64]:
        """(n,) presentation times in seconds, each rounded once."""
        return self.pts * self.time_base.numerator / self.time_base.denominator

    @property
    def end_s(self) -> float:
        """When the last frame is no longer shown, in seconds."""
        return float(self.end * self.time_base)

    def at_or_before(self, times_s: ArrayLike) -> Indices:
        """Return, for each time, the index of the last frame with pts <= it; of the first frame where there is none."""
        return np.maximum(np.searchsorted(self.t_s, times_s, side="right") - 1, 0)

    def select(self, rule: FrameRule, fps: float) -> Indices:
        """Return the index of the frame that stands for each time k / fps, k = 0, 1, ..., in exact arithmetic.

        at_or_before: the last frame with pts <= k / fps. nearest: the one whose pts is nearest, of two the earlier.
        ffmpeg_near: what ffmpeg's filter ``fps=<fps>`` puts out with its default rounding: the last frame whose pts,
        rounded to the nearest 1 / fps, halves up, is at most k / fps; so up to 0.5 / fps late. index_linspace: n
        frames evenly spaced by index, ``linspace(0, number of frames - 1, n)`` truncated, where n is the number of
        times, whatever the frames' times are.
        The last k is the last with k / fps before the end of the video; ffmpeg_near has round(end x fps) rows.
        Raises ValueError where the rule is unknown.
        """
        rate = Fraction(str(fps))
        frame = self.pts * (self.time_base.numerator * rate.numerator)
        row = self.time_base.denominator * rate.denominator
        end = self.end * self.time_base * rate
        times = np.arange(ceil(end), dtype=np.int64) * row
        before: Indices = np.maximum(np.searchsorted(frame, times, side="right") - 1, 0)
        if rule == "at_or_before":
            return before
        if rule == "nearest":
            after = np.minimum(before + 1, len(frame) - 1)
            return np.where(abs(frame[after] - times) < abs(times - frame[before]), after, before)
        if rule == "ffmpeg_near":
            slots = (2 * frame + row) // (2 * row)
            rows = np.arange(int(end + Fraction(1, 2)), dtype=np.int64)
            return np.maximum(np.searchsorted(slots, rows, side="right") - 1, 0)
        if rule == "index_linspace":
            return np.linspace(0, len(frame) - 1, len(times)).astype(np.int64)
        raise ValueError(f"frame rule {rule!r} is not one of {', '.join(get_args(FrameRule))}")


def scan(path: Path) -> Timeline:
    """Return the timeline of ``path`` by its packets, without decoding; by decoding where packets do not tell.

    Raises MediaError where the file cannot be read, or ends before its header says.
    """
    pts, keys, end = [], [], 0
    with opened(path) as container:
        stream = Stream(container)
        for packet in container.demux(stream.video):
            if packet.size == 0 or packet.is_discard:
                continue
            if packet.pts is None or not packet.duration:
                return decoded(path)
            at = packet.pts - stream.start
            end = max(end, at + packet.duration)
            pts.append(at)
            if packet.is_keyframe:
                keys.append(at)
        time_base = stream.time_base
        if not pts:
            raise MediaError("no frame could be decoded")
        stream.check_end(float(end * time_base))
    ascending = np.unique(np.array(pts, np.int64))
    if len(ascending) < len(pts) or ascending[0] < 0 or not keys:
        return decoded(path)
    return Timeline(ascending, time_base, end, np.sort(np.array(keys, np.int64)))


def decoded(path: Path) -> Timeline:
    """Return the timeline of ``path`` by decoding it whole. Raises MediaError where it cannot be decoded."""
    pts = []
    for frame in frames(path):
        pts.append(frame.pts)
    return Timeline(
        np.array(pts, np.int64),
        frame.time_base,
        frame.pts + frame.duration,
        np.array(pts[:1], np.int64),
    )

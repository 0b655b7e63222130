"""The presentation times of a video's frames, and the selection of frames by time."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stepline.media.decode import DamagedError, Stream, opened, packets
from stepline.spec import FrameRule

Indices = NDArray[np.int64]


Gap = tuple[float, float, str]
"""[start_s, end_s) of a video without a readable picture, and the reason."""


def described(gaps: Sequence[Gap]) -> str:
    """Return one line with the times and reasons of the first three gaps."""
    lines = [f"{start_s:.3f} to {end_s:.3f} s: {reason}" for start_s, end_s, reason in gaps[:3]]
    return "; ".join([*lines, *([f"and {len(gaps) - 3} more gaps"] if len(gaps) > 3 else [])])


def absent_s(gaps: Sequence[Gap]) -> float:
    """Return the total length of the gaps in seconds."""
    return float(sum(end_s - start_s for start_s, end_s, _ in gaps))


@dataclass(frozen=True)
class Timeline:
    """The presentation time of each frame of a video.

    pts: (n,) ascending, in units of ``time_base``, from time 0. end: the end of the last frame, in the same units.
    keys: the values of ``pts`` at which decoding can start. gaps: disjoint and in order of time; the last one may
    extend to the end that the header states.
    packets: (n,) for a salvaged file, the index of each frame's packet, -1 if the frame is lost; otherwise None.
    shifts: for a salvaged file, of the times of each joined recording, see ``Clock``.
    """

    pts: Indices
    time_base: Fraction
    end: int
    keys: Indices
    gaps: tuple[Gap, ...] = ()
    packets: Indices | None = None
    shifts: tuple[Fraction, ...] = ()

    @property
    def lost(self) -> NDArray[np.bool_]:
        """(n,) True for lost frames."""
        return np.zeros(len(self.pts), np.bool_) if self.packets is None else self.packets < 0

    @property
    def truncated_s(self) -> float:
        """The end of the video by its header in seconds, if the file is truncated; otherwise 0."""
        return self.gaps[-1][1] if self.gaps and self.gaps[-1][1] > self.end_s else 0.0

    @property
    def t_s(self) -> NDArray[np.float64]:
        """(n,) presentation times in seconds, each rounded once."""
        return self.pts * self.time_base.numerator / self.time_base.denominator

    @property
    def end_s(self) -> float:
        """The end of the last frame, in seconds."""
        return float(self.end * self.time_base)

    def at_or_before(self, times_s: ArrayLike) -> Indices:
        """Return, for each time, the index of the last frame with pts <= it, or of the first frame if there is none."""
        return np.maximum(np.searchsorted(self.t_s, times_s, side="right") - 1, 0)

    def nearest_had(self, indices: Indices) -> Indices:
        """Return, for each frame, the nearest frame that is not lost; of two equally near, the earlier."""
        had = np.flatnonzero(~self.lost)
        after = np.searchsorted(had, indices).clip(1, max(1, len(had) - 1))
        before, after = had[after - 1], had[after.clip(0, len(had) - 1)]
        nearer = abs(self.pts[after] - self.pts[indices]) < abs(self.pts[indices] - self.pts[before])
        nearest: Indices = np.where(nearer, after, before)
        return nearest

    def select(self, rule: FrameRule, fps: float) -> Indices:
        """Return the index of the frame that represents each time k / fps, k = 0, 1, ..., in exact arithmetic.

        at_or_before: the last frame with pts <= k / fps. nearest: the frame with the nearest pts; of two equally near,
        the earlier. ffmpeg_near: the output of ffmpeg's filter ``fps=<fps>`` with its default rounding: the last frame
        whose pts, rounded to the nearest 1 / fps, halves up, is at most k / fps; so it may be up to 0.5 / fps late.
        index_linspace: n frames evenly spaced by index, ``linspace(0, number of frames - 1, n)`` truncated, where n is
        the number of times; the frames' times have no effect.
        The last k is the largest with k / fps before the end of the video; ffmpeg_near has round(end x fps) rows.
        Raises ValueError if the rule is unknown.
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
    """Return the timeline of ``path`` from its packets, without decoding.

    Raises DamagedError if packets have no presentation times, or the file is damaged or ends before its header states,
    and MediaError if it cannot be read.
    """
    pts, keys, end, n_packets = [], [], 0, 0
    with opened(path) as container:
        stream = Stream(container)
        if stream.decodes_alone:
            raise DamagedError("the container has no presentation times")
        for packet in packets(container, stream.video):
            n_packets += packet.size > 0
            if packet.is_corrupt:
                raise DamagedError("the container marks a packet as damaged")
            if packet.size == 0 or packet.is_discard:
                continue
            if packet.pts is None or not packet.duration:
                raise DamagedError("a packet has no time")
            at = packet.pts - stream.start
            end = max(end, at + packet.duration)
            pts.append(at)
            if packet.is_keyframe:
                keys.append(at)
        time_base = stream.time_base
        if reason := stream.missing_end(float(end * time_base), n_packets):
            raise DamagedError(reason)
    ascending = np.unique(np.array(pts, np.int64))
    if len(ascending) < len(pts) or not len(pts) or ascending[0] < 0 or not keys:
        raise DamagedError("its packets do not state when frames are shown")
    return Timeline(ascending, time_base, end, np.sort(np.array(keys, np.int64)))

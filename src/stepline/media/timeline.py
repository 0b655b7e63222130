"""The presentation times of a video's frames, and which frames stand for which times."""

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
"""[start_s, end_s) of a video of which no picture can be had, and why."""


def described(gaps: Sequence[Gap]) -> str:
    """Return in a line when there is no picture, and why: of the first three gaps."""
    lines = [f"{start_s:.3f} to {end_s:.3f} s: {reason}" for start_s, end_s, reason in gaps[:3]]
    return "; ".join([*lines, *([f"and {len(gaps) - 3} more gaps"] if len(gaps) > 3 else [])])


def absent_s(gaps: Sequence[Gap]) -> float:
    """Return how many seconds are absent."""
    return float(sum(end_s - start_s for start_s, end_s, _ in gaps))


@dataclass(frozen=True)
class Timeline:
    """When each frame of a video is shown.

    pts: (n,) ascending, in units of ``time_base``, from time 0. end: when the last frame is no longer shown, in the
    same units. keys: those of ``pts`` at which decoding can start. gaps: in time's order and apart; the last one
    reaches up to where the header says that the video ends.
    packets: (n,) of a salvaged file the number of each frame's packet, -1 where the frame is lost; else None.
    """

    pts: Indices
    time_base: Fraction
    end: int
    keys: Indices
    gaps: tuple[Gap, ...] = ()
    packets: Indices | None = None

    @property
    def lost(self) -> NDArray[np.bool_]:
        """(n,) whether each frame is lost."""
        return np.zeros(len(self.pts), np.bool_) if self.packets is None else self.packets < 0

    @property
    def truncated_s(self) -> float:
        """Up to when the video goes on by its header, although it ends before; 0 where it does not."""
        return self.gaps[-1][1] if self.gaps and self.gaps[-1][1] > self.end_s else 0.0

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

    def nearest_had(self, indices: Indices) -> Indices:
        """Return for each frame the nearest that is not lost, of two the earlier."""
        had = np.flatnonzero(~self.lost)
        after = np.searchsorted(had, indices).clip(1, max(1, len(had) - 1))
        before, after = had[after - 1], had[after.clip(0, len(had) - 1)]
        nearer = abs(self.pts[after] - self.pts[indices]) < abs(self.pts[indices] - self.pts[before])
        nearest: Indices = np.where(nearer, after, before)
        return nearest

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
    """Return the timeline of ``path`` by its packets, without decoding.

    Raises DamagedError where packets do not tell, or the file is damaged or ends before its header says; MediaError
    where it cannot be read.
    """
    pts, keys, end, n_packets = [], [], 0, 0
    with opened(path) as container:
        stream = Stream(container)
        if stream.decodes_alone:
            raise DamagedError("the container has no presentation times")
        for packet in packets(container, stream.video):
            n_packets += packet.size > 0
            if packet.is_corrupt:
                raise DamagedError("the container says that it is damaged")
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
        raise DamagedError("its packets do not say when frames are shown")
    return Timeline(ascending, time_base, end, np.sort(np.array(keys, np.int64)))

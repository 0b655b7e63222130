"""The frames of a video that each feature row is computed from."""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, inf, lcm

import numpy as np
from numpy.typing import ArrayLike, NDArray

from stepline.media.decode import MediaError
from stepline.media.spans import Spans, rows_within
from stepline.media.timeline import Gap, Indices, Timeline
from stepline.spec import ClipSpec, FrameSpec

OUTSIDE = -1
"""The index of a frame of zeros."""
LOST = -2
"""The index of a frame after the end of a truncated video."""


class ClipError(MediaError, ValueError):
    """A listed clip is not in the video, or the frame rule cannot choose its frames."""


@dataclass(frozen=True)
class Rows:
    """The rows of a video.

    frames: (N, num_frames) indices into the timeline, ``OUTSIDE`` or ``LOST``. k: (N,) the index of each row on the
    grid, or in the list of clips. span: (N,) the index of the span that contains it; 0 if the whole video is read.
    """

    frames: Indices
    k: Indices
    span: Indices


def rows(spec: FrameSpec, timeline: Timeline, *, spans: Spans = (), listed: Sequence[tuple[float, float]] = ()) -> Rows:
    """Return the rows of a video that ``spec`` describes; of the ``listed`` clips if its placement is not ``grid``.

    grid: row k exists if k x hop / fps is before the end of the video, as in ``Timeline.select``; with ``tail`` drop,
    if its whole clip is. A repeated frame is the frame that the rule chooses for the grid's first or last time. If
    spans are read, the whole clip of a row lies in one span, or extends from it beyond the video's start or end.
    middles: row i is clip i. Its times are computed exactly from the decimals of start_s and end_s; of two equally near
    frames, the earlier is used. ``tail`` decides the frames for times before 0 and from the video's end on.
    ends: let first be the last frame with pts <= start_s and last the last frame with pts < end_s. The frames are
    linspace(first, last, num_frames), truncated, for any frame rule. All are in the video, so ``tail`` has no effect.
    seconds: every r-th frame from first to last, where r is the rounded mean frame rate. If these are more than
    num_frames, it uses those at linspace positions, truncated; if fewer, the remaining frames are ``OUTSIDE``.
    Raises ClipError if a clip is empty, outside the video, not in one span or, with ``tail`` drop, not wholly in the
    video, and if ``middles`` is combined with a frame rule that does not use times.
    """
    if not isinstance(spec, ClipSpec) or spec.placement == "grid":
        return _grid(spec, timeline, spans)
    t_s = timeline.t_s
    found = [_clip(spec, timeline, t_s, clip) for clip in listed]
    frames = np.array(found, np.int64).reshape(len(listed), spec.num_frames)
    span = np.array([_span_of(clip, timeline, spans) for clip in listed], np.int64)
    return Rows(frames, np.arange(len(listed), dtype=np.int64), span)


@dataclass(frozen=True)
class Readable:
    """The rows of a video that can be computed.

    rows: their ``span`` is an index into ``spans``. spans: stretches [start_s, end_s) in which all rows exist; [] for
    the whole video. gaps: the video's gaps, if a row is lost to one.
    """

    rows: Rows
    spans: Spans
    gaps: Sequence[Gap]


def readable(spec: FrameSpec, timeline: Timeline, made: Rows, spans: Spans) -> Readable:
    """Return the rows of a video without lost frames, and the stretches in which they lie."""
    lost = (timeline.lost[made.frames] & (made.frames >= 0)).any(axis=1)
    listed = isinstance(spec, ClipSpec) and spec.placement != "grid"
    hop = Fraction(spec.hop if isinstance(spec, ClipSpec) else 1) / Fraction(str(spec.fps))
    cut_off = not listed and bool(len(made.k)) and (int(made.k[-1]) + 1) * hop < timeline.truncated_s
    lost |= (made.frames == LOST).any(axis=1)
    if not (lost.any() or cut_off):
        return Readable(made, spans, ())
    kept = Rows(made.frames[~lost], made.k[~lost], made.span[~lost])
    if listed:
        return Readable(kept, spans, timeline.gaps)
    stretches: list[list[float]] = []
    numbers = np.zeros_like(kept.span)
    for number, (start_s, end_s) in enumerate(spans or [(0.0, inf)]):
        of_all, of_kept = made.k[made.span == number], np.flatnonzero(kept.span == number)
        k = kept.k[of_kept]
        for run in np.split(np.arange(len(k)), np.flatnonzero(np.diff(k) > 1) + 1):
            if len(run):
                first, last = int(k[run[0]]), int(k[run[-1]])
                numbers[of_kept[run]] = len(stretches)
                ended = last == of_all[-1] and not (cut_off and number == len(spans or [0]) - 1)
                stretches.append(
                    [
                        float(start_s) if first == of_all[0] else float(first * hop),
                        float(end_s) if ended else float((last + 1) * hop),
                    ]
                )
    return Readable(Rows(kept.frames, kept.k, numbers), stretches, timeline.gaps)


def order(frames: Indices) -> Indices:
    """Return the (N,) order in which rows of (N, num_frames) frames become complete as frames arrive in order.

    Rows that wait for the same frame keep their order.
    """
    return np.argsort(frames.max(axis=1, initial=OUTSIDE), kind="stable")


def _grid(spec: FrameSpec, timeline: Timeline, spans: Spans) -> Rows:
    grid = timeline.select(spec.frame_rule, spec.fps)
    n, interval, hop, offset, tail = 1, 1, 1, 0, "drop"
    if isinstance(spec, ClipSpec):
        n, interval, hop, offset, tail = spec.num_frames, spec.interval, spec.hop, spec.offset, spec.tail
    k = np.arange(-(-len(grid) // hop), dtype=np.int64)
    slots = offset + k[:, None] * hop + np.arange(n) * interval
    outside = (slots < 0) | (slots >= len(grid))
    if tail == "drop":
        kept = ~outside.any(axis=1)
        k, slots, outside = k[kept], slots[kept], outside[kept]
    frames = grid[slots.clip(0, len(grid) - 1)] if len(grid) else slots
    if tail == "zero":
        frames = np.where(outside, OUTSIDE, frames)
    if timeline.truncated_s:
        frames = np.where(slots >= len(grid), LOST, frames)
    if not spans:
        return Rows(frames, k, np.zeros_like(k))
    within = []
    for start_s, end_s in spans:
        held = rows_within((start_s, end_s), spec.fps)
        after = (slots[:, 0] >= held.start) | (start_s <= 0)
        before = (slots[:, -1] < held.stop) | (end_s >= timeline.end_s)
        within.append(after & before)
    span, row = np.nonzero(within)
    return Rows(frames[row], k[row], span)


def _clip(spec: ClipSpec, timeline: Timeline, t_s: NDArray[np.float64], clip: tuple[float, float]) -> Indices:
    start_s, end_s = clip
    if not -inf < start_s < end_s < inf:
        raise ClipError(f"the clip {_named(clip)} is empty")
    if timeline.end_s < min(end_s, timeline.truncated_s):
        return np.full(spec.num_frames, LOST)
    if start_s >= timeline.end_s or end_s <= 0:
        raise ClipError(f"the clip {_named(clip)} lies outside the video, which ends at {timeline.end_s:.3f} s")
    if spec.tail == "drop" and (start_s < 0 or end_s > timeline.end_s):
        raise ClipError(f"the clip {_named(clip)} extends beyond the video, which ends at {timeline.end_s:.3f} s")
    if spec.placement == "middles":
        return _middles(spec, timeline, Fraction(str(start_s)), Fraction(str(end_s)))
    if spec.placement == "each_second":
        return _shown_at(t_s, _each_second(spec, start_s, min(end_s, timeline.end_s)))
    first = int(_shown_at(t_s, start_s))
    last = max(first, int(np.searchsorted(t_s, end_s, side="left")) - 1)
    return _ends(spec, first, last) if spec.placement == "ends" else _seconds(spec, timeline, first, last)


def _shown_at(t_s: NDArray[np.float64], times_s: ArrayLike) -> Indices:
    return np.maximum(np.searchsorted(t_s, times_s, side="right") - 1, 0)


def _ends(spec: ClipSpec, first: int, last: int) -> Indices:
    return np.linspace(first, last, spec.num_frames).astype(np.int64)


def _seconds(spec: ClipSpec, timeline: Timeline, first: int, last: int) -> Indices:
    each = np.arange(first, last + 1, max(1, round(len(timeline.pts) / timeline.end_s)))
    if len(each) > spec.num_frames:
        return np.asarray(each[np.linspace(0, len(each) - 1, spec.num_frames).astype(np.int64)], np.int64)
    return np.pad(each, (0, spec.num_frames - len(each)), constant_values=OUTSIDE)


def _each_second(spec: ClipSpec, start_s: float, end_s: float) -> NDArray[np.float64]:
    first, last = max(ceil(start_s), 0), ceil(end_s) - 1
    if first > last:
        return np.full(spec.num_frames, start_s)
    return np.floor(np.linspace(first, last, spec.num_frames))


def _middles(spec: ClipSpec, timeline: Timeline, start: Fraction, end: Fraction) -> Indices:
    if spec.frame_rule not in ("at_or_before", "nearest"):
        raise ClipError(
            f"the frame rule {spec.frame_rule} cannot choose frames of listed clips: use at_or_before or nearest"
        )
    parts = 2 * spec.num_frames
    first, part = start / timeline.time_base, (end - start) / parts / timeline.time_base
    unit = lcm(first.denominator, part.denominator)
    least, more = int(first * unit), int(part * unit)
    ticks = [least + more * number for number in range(1, parts, 2)]  # in units of time_base / unit
    frames = np.maximum(np.searchsorted(timeline.pts, [tick // unit for tick in ticks], side="right") - 1, 0)
    if spec.frame_rule == "nearest":
        after = np.minimum(frames + 1, len(timeline.pts) - 1)
        both = (timeline.pts[frames] + timeline.pts[after]).tolist()
        later = [two * unit < 2 * tick for two, tick in zip(both, ticks, strict=True)]
        frames = np.where(later, after, frames)
    if spec.tail == "zero":
        frames = np.where([not 0 <= tick < timeline.end * unit for tick in ticks], OUTSIDE, frames)
    return frames


def _span_of(clip: tuple[float, float], timeline: Timeline, spans: Spans) -> int:
    start_s, end_s = clip
    if not spans:
        return 0
    for number, (from_s, to_s) in enumerate(spans):
        after, before = from_s <= max(start_s, 0), min(end_s, timeline.end_s) <= to_s
        if after and before:
            return number
    raise ClipError(f"the clip {_named(clip)} does not lie in one of the spans that are read")


def _named(clip: tuple[float, float]) -> str:
    return f"from {clip[0]} s to {clip[1]} s"

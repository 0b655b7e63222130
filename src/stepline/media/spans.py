"""Spans: the parts of a video that are read, where that is not the whole."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepline.media.frame import DecodedFrame

Spans = Sequence[Sequence[float]]
"""[start_s, end_s) of each, ascending and apart; none stands for the whole video."""
GAP_S = 10.0
"""Spans that are nearer than this are read as one."""


def merged(spans: Iterable[Sequence[float]], gap_s: float = GAP_S) -> list[list[float]]:
    """Return ``spans`` in time's order, those in one that touch or have less than ``gap_s`` seconds between them."""
    found: list[list[float]] = []
    for start_s, end_s in sorted(map(tuple, spans)):
        if found and (start_s <= found[-1][1] or start_s - found[-1][1] < gap_s):
            found[-1][1] = max(found[-1][1], float(end_s))
        else:
            found.append([float(start_s), float(end_s)])
    return found


def rows_within(span: Sequence[float], fps: float) -> range:
    """Return all k for which k / fps lies within the span, in exact arithmetic."""
    rate = Fraction(str(fps))
    start, end = (ceil(Fraction(time_s) * rate) for time_s in span)
    return range(start, end)


def shown(path: Path, spans: Spans, *, turned: bool = True) -> Iterator[tuple["DecodedFrame", bool]]:
    """Yield the frames that are shown within ``spans``, and of each whether it is the first of its span.

    The first of a span is the last with pts <= its start. Frames between spans are jumped where the container leads to
    a key frame before the next one, and decoded where not. Raises MediaError where the file cannot be decoded that far.
    """
    from stepline.media.decode import MissedKeyError, Stream, frames, opened

    with opened(path) as container:
        time_base = Stream(container).time_base
    for number, (start_s, _) in enumerate(spans):
        try:
            with closing(frames(path, key=int(Fraction(start_s) / time_base) or None, turned=turned)) as decoded:
                yield from within(decoded, spans[number : number + 1])
        except MissedKeyError:
            with closing(frames(path, turned=turned)) as decoded:
                yield from within(decoded, spans[number:])
            return


def within(decoded: Iterable["DecodedFrame"], spans: Spans) -> Iterator[tuple["DecodedFrame", bool]]:
    """Yield those of the frames of a video that are shown within ``spans``, as ``shown`` does."""
    waiting, begun, last = list(spans), False, None
    for frame in decoded:
        while waiting and frame.t_s > waiting[0][0]:
            if not begun and last is not None:
                yield last, True
                begun = True
            if frame.t_s < waiting[0][1]:
                yield frame, not begun
                begun = True
                break
            waiting.pop(0)
            begun = False
        if not waiting:
            return
        last = frame
    for start_s, _ in waiting[int(begun) :]:
        if last is not None and last.end_s > start_s:
            yield last, True

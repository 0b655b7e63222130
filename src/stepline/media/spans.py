"""Spans: the parts of a video that are read, if it is not read whole."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepline.media.frame import DecodedFrame

Spans = Sequence[Sequence[float]]
"""[start_s, end_s) of each, ascending and disjoint; an empty list means the whole video."""
GAP_S = 10.0
"""Spans with less than this many seconds between them are read as one."""


def merged(spans: Iterable[Sequence[float]]) -> list[list[float]]:
    """Return ``spans`` in order of time; those with less than ``GAP_S`` seconds between them are merged."""
    found: list[list[float]] = []
    for start_s, end_s in sorted(map(tuple, spans)):
        if found and start_s - found[-1][1] < GAP_S:
            found[-1][1] = max(found[-1][1], float(end_s))
        else:
            found.append([float(start_s), float(end_s)])
    return found


def rows_within(span: Sequence[float], fps: float) -> range:
    """Return all k with k / fps within the span, in exact arithmetic."""
    rate = Fraction(str(fps))
    start, end = (ceil(Fraction(time_s) * rate) for time_s in span)
    return range(start, end)


def shown(path: Path, spans: Spans, *, turned: bool = True) -> Iterator[tuple["DecodedFrame", bool]]:
    """Yield the frames that are shown within ``spans``, each with a flag for the first frame of its span.

    The first frame of a span is the last frame with pts <= its start. Frames between spans are skipped if the container
    can seek to a key frame before the next span, and decoded otherwise. Raises MediaError if the file cannot be decoded
    up to the last span.
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
    """Yield the frames of ``decoded`` that are shown within ``spans``, as ``shown`` does."""
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

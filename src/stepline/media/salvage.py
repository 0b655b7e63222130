"""What there is of a file that is damaged, or whose packets do not say when frames are shown: all of it is decoded."""

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stepline.media.clock import Clock
from stepline.media.decode import DamagedError, DecodedFrame, MediaError, Stream, opened, packets
from stepline.media.timeline import Gap, Timeline

if TYPE_CHECKING:
    import av

Hear = Callable[["av.Packet[av.AudioStream]"], None]
"""Takes a packet of the sound, whose times count from time 0; the empty one ends it."""


@dataclass
class Found:
    """The packets of a video stream by their number, and what came of them.

    pts: in units of the time base from time 0, None where there is none. duration: in the same units. keys: those at
    which decoding can start. left_out: those whose frames are not to be shown. marked: those that the container says
    are damaged. hurt: why the decoder could not decode others, or not well. shown: those whose frames came out, in
    order of presentation. end: why the container could not be read further. sizes: of the pictures. one_each: whether
    each packet is shown as a frame. joined: whether times go on where recordings were joined.
    """

    pts: list[int | None] = field(default_factory=list)
    duration: list[int] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)
    left_out: set[int] = field(default_factory=set)
    marked: set[int] = field(default_factory=set)
    hurt: dict[int, str] = field(default_factory=dict)
    shown: list[int] = field(default_factory=list)
    end: str = ""
    sizes: set[tuple[int, int]] = field(default_factory=set)
    one_each: bool = True
    joined: bool = False


def salvaged(path: Path) -> Timeline:
    """Return the timeline of ``path`` by decoding all of it, with the gaps of what cannot be had.

    The frame of a damaged packet is lost, and, as they are predicted from it, all others until the next key frame;
    where nothing is predicted from it, it alone. Times that are absent or go back are made of those that there are, in
    the order of presentation. Raises MediaError where no frame can be had.
    """
    with opened(path) as container:
        stream = Stream(container)
        found = Found()
        for _ in pictures(container, stream, found):
            pass
        frame_duration, time_base = stream.frame_duration, stream.time_base
        lost = _lost(found, path)
        if lost.keys() >= {*found.shown}:
            reason = next(iter(lost.values()), found.end)
            raise MediaError(f"no frame could be decoded{f': {reason}' if reason else ''}")
        numbers = _in_order(found, lost)
        pts = _times(numbers, found, frame_duration)
        end = pts[-1] + (found.duration[numbers[-1]] or frame_duration)
        gaps = _gaps([*pts, end], [lost.get(number) for number in numbers], time_base)
        end_s = float(end * time_base)
        if reason := found.end or stream.missing_end(end_s, len(found.pts)):
            gaps.append((end_s, max(end_s, stream.declared_s()), reason))
    plain = not (lost or gaps or found.joined) and len(found.sizes) == 1 and len({*pts}) == len(pts)
    plain = plain and pts == [found.pts[number] for number in numbers]
    packets_of = [-1 if number in lost else number for number in numbers]
    return Timeline(
        pts=np.array(pts, np.int64),
        time_base=time_base,
        end=end,
        keys=np.array(pts[:1], np.int64),
        gaps=tuple(gaps),
        packets=None if plain else np.array(packets_of, np.int64),
    )


def salvaged_frames(path: Path, timeline: Timeline, *, turned: bool = True) -> Generator[tuple[int, DecodedFrame]]:
    """Yield the frames of ``path`` that can be had, each with its index in the timeline that ``salvaged`` returned."""
    with opened(path) as container:
        yield from placed(container, Stream(container, turned=turned), timeline)


def placed(
    container: "av.container.InputContainer", stream: Stream, timeline: Timeline, hear: Hear | None = None
) -> Generator[tuple[int, DecodedFrame]]:
    """Yield the frames of a container that can be had, as ``salvaged_frames`` does; ``hear`` takes its sound."""
    numbers = timeline.packets
    places = {} if numbers is None else {number: place for place, number in enumerate(numbers.tolist()) if number >= 0}
    ends = [*timeline.pts.tolist()[1:], timeline.end]
    for n_shown, picture in enumerate(pictures(container, stream, Found(), hear)):
        if (place := n_shown if numbers is None else places.get(picture.pts)) is not None:
            pts = int(timeline.pts[place])
            yield place, stream.frame(picture, pts, ends[place] - pts)


def pictures(
    container: "av.container.InputContainer", stream: Stream, found: Found, hear: Hear | None = None
) -> Iterator["av.VideoFrame"]:
    """Yield the pictures that can be decoded, each with the number of its packet as ``pts``; fill ``found``.

    hear: takes the packets of the sound.
    """
    clock = Clock(container, stream.start * stream.time_base)
    found.one_each = stream.one_each
    streams = [stream.video, *([stream.sound] if hear and stream.sound else [])]
    for packet in _to_the_end(container, streams, found):
        shift_s = clock.shift_s(packet) if packet.size else Fraction(0)
        if packet.stream is not stream.video and hear:
            _shift(packet, round(shift_s / packet.time_base) if packet.size else 0)
            hear(packet)
            continue
        if packet.size:
            _shift(packet, round(shift_s / stream.time_base))
            _number(packet, found)
        yield from _decoded(packet, found)
    found.joined = clock.joined


def _to_the_end(
    container: "av.container.InputContainer", streams: Iterable[Any], found: Found
) -> Iterator["av.Packet[Any]"]:
    """Yield all packets, and the empty ones that end the streams also where the container cannot be read on."""
    import av

    try:
        yield from packets(container, *streams)
    except DamagedError as error:
        found.end = str(error)
        for stream in streams:
            last: av.Packet[Any] = av.Packet()
            last.stream = stream
            yield last


def _shift(packet: "av.Packet[Any]", by: int) -> None:
    packet.pts = None if packet.pts is None else packet.pts + by
    packet.dts = None if packet.dts is None else packet.dts + by


def _number(packet: "av.Packet[av.VideoStream]", found: Found) -> None:
    """Note what a packet says, and let its number stand for its time."""
    number = len(found.pts)
    found.pts.append(packet.pts)
    found.duration.append(packet.duration or 0)
    if packet.is_keyframe:
        found.keys.append(number)
    if packet.is_discard:
        found.left_out.add(number)
    if packet.is_corrupt:
        found.marked.add(number)
    packet.pts = packet.dts = number


def _decoded(packet: "av.Packet[av.VideoStream]", found: Found) -> Iterator["av.VideoFrame"]:
    import av

    try:
        decoded = packet.decode()
    except av.FFmpegError as error:
        if isinstance(error, MemoryError):
            raise
        found.hurt.setdefault(len(found.pts) - 1, f"cannot be decoded: {error.strerror}")
        return
    for picture in decoded:
        if picture.pts is not None and 0 <= picture.pts < len(found.pts):
            found.shown.append(picture.pts)
            found.sizes.add((picture.width, picture.height))
            found.one_each &= not picture.interlaced_frame
            if picture.is_corrupt:
                found.hurt.setdefault(picture.pts, "damaged")
            yield picture


def _lost(found: Found, path: Path) -> dict[int, str]:
    """Return the packets whose frames cannot be had, and why."""
    first = min(found.shown, default=len(found.pts))
    hurt = dict.fromkeys(range(first), "no key frame stands before it") | dict.fromkeys(found.marked, "damaged")
    hurt |= found.hurt
    for number in {*range(first, len(found.pts))} - {*found.shown} if found.one_each else ():
        if (found.pts[number] or 0) > (found.pts[first] or 0):
            hurt.setdefault(number, "it does not come out of the decoder")
    hurt = {number: hurt[number] for number in sorted(hurt.keys() - found.left_out)}
    if not hurt:
        return {}
    predicted = _with_references(path)
    keys = [number for number in found.keys if number not in hurt]
    places = {number: place for place, number in enumerate(found.shown)}
    lost: dict[int, str] = {}
    for number, reason in hurt.items():
        lost.setdefault(number, reason)
        alone = number not in predicted and (number in places or number in found.hurt)
        if alone and number not in found.marked:  # where the container is damaged, whole frames may be absent behind it
            continue
        key, after = [*(key for key in keys if key > number), len(found.pts), len(found.pts)][:2]
        leading = (n for n in range(key + 1, after) if places.get(n, after) < places.get(key, -1))
        for each in (*range(number, key), *leading):
            if each not in found.left_out:
                lost.setdefault(each, reason)
    return lost


def _with_references(path: Path) -> set[int]:
    """Return the packets that come out, or fail, where those are left out from which no frame is predicted."""
    with opened(path) as container:
        stream = Stream(container)
        stream.video.codec_context.skip_frame = "NONREF"
        found = Found()
        for _ in pictures(container, stream, found):
            pass
    return {*found.shown, *found.hurt}


def _in_order(found: Found, lost: Iterable[int]) -> list[int]:
    """Return the packets whose frames are shown or lost, in order of presentation."""
    order, hidden = found.shown, sorted({*lost} - {*found.shown})
    times = [found.pts[number] for number in (*order, *hidden)]
    if None not in times and all(a <= b for a, b in pairwise(times[: len(order)])):  # type: ignore[operator]
        return sorted([*order, *hidden], key=found.pts.__getitem__)  # type: ignore[arg-type]
    for number in hidden:
        later = (place for place, other in enumerate(order) if other > number)
        order = list(order)
        order.insert(next(later, len(order)), number)
    return order


def _times(numbers: list[int], found: Found, frame_duration: int) -> list[int]:
    """Return when each frame is shown: ascending, and none is absent."""
    known = [pts for number in numbers if (pts := found.pts[number]) is not None]
    left = sorted(known)
    if left != known:  # the container has times of decoding alone
        left = [pts - left[0] for pts in left]
    left.reverse()
    times: list[int] = []
    following = 0
    for number in numbers:
        time = left.pop() if found.pts[number] is not None else min([following, *left[-1:]])
        times.append(time)
        following = time + (found.duration[number] or frame_duration)
    return times


def _gaps(times: list[int], lost: list[str | None], time_base: Fraction) -> list[Gap]:
    """Return the stretches of lost frames in seconds. times: of each frame, and when the last is no longer shown."""
    gaps: list[Gap] = []
    for place, reason in enumerate(lost):
        if reason is None:
            continue
        start_s, end_s = (float(time * time_base) for time in times[place : place + 2])
        if place and lost[place - 1] is not None:
            gaps[-1] = (gaps[-1][0], end_s, gaps[-1][2])
        else:
            gaps.append((start_s if place else min(start_s, 0.0), end_s, reason))
    return gaps

"""Reading damaged files, and files whose packets have no presentation times, by decoding them completely."""

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from stepline.media.clock import Clock
from stepline.media.decode import Complaints, DamagedError, MediaError, Stream, opened, packets
from stepline.media.frame import DecodedFrame
from stepline.media.timeline import Gap, Timeline

if TYPE_CHECKING:
    import av

TRUNCATED = frozenset(("h264", "mpeg1video", "mpeg2video"))
"""Codecs whose decoders report a picture without its end."""
Hear = Callable[["av.Packet[av.AudioStream]", int], None]
"""Receives a packet of the audio, with times relative to time 0, and the index of its joined recording.

The empty packet ends the audio.
"""


@dataclass
class Found:
    """The packets of a video stream by their index, and the results of decoding them.

    pts: in units of the time base from time 0, or None. duration: in the same units. keys: packets at which decoding
    can start. left_out: packets whose frames must not be shown. marked: packets that the container marks as damaged.
    hurt: the decoder's reason for each packet that it could not decode, or not correctly. shown: packets whose frames
    were decoded, in order of presentation. end: why the container could not be read further. sizes: of the pictures.
    one_each: whether each packet is one frame. joined: whether the file consists of joined parts. shifts: of their
    times. left_out_s: the most by which their times were moved back.
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
    shifts: list[Fraction] = field(default_factory=list)
    left_out_s: float = 0.0


def salvaged(path: Path) -> Timeline:
    """Return the timeline of ``path`` by decoding all of it, with a gap for each unreadable stretch.

    If a packet is damaged, its frame is lost, and all frames up to the next key frame, as they are predicted from it.
    If no frame is predicted from it, only its own frame is lost. Times that are missing or go back are interpolated
    from the others, in order of presentation. Raises MediaError if no frame can be decoded.
    """
    with opened(path) as container:
        stream = Stream(container)
        found = Found()
        for _ in pictures(container, stream, found):
            pass
        time_base = stream.time_base
        lost = _lost(found, path)
        if lost.keys() >= {*found.shown}:
            reason = next(iter(lost.values()), found.end)
            raise MediaError(f"no frame could be decoded{f': {reason}' if reason else ''}")
        numbers = _in_order(found, lost)
        *pts, end = _times(numbers, found, stream.frame_duration)
        gaps = _gaps([*pts, end], [lost.get(number) for number in numbers], time_base)
        end_s = float(end * time_base)
        if reason := stream.missing_end(end_s + found.left_out_s, len(found.pts)) or found.end:
            start_s = gaps.pop()[0] if gaps and gaps[-1][1] >= end_s else end_s
            gaps.append((start_s, max(end_s, stream.declared_s()), reason))
    plain = (
        not (lost or gaps or found.joined or stream.decodes_alone) and len(found.sizes) == 1 and len({*pts}) == len(pts)
    )
    plain = plain and numbers == found.shown and pts == [found.pts[number] for number in numbers]
    packets_of = [-1 if number in lost else number for number in numbers]
    return Timeline(
        pts=np.array(pts, np.int64),
        time_base=time_base,
        end=end,
        keys=np.array(pts[:1], np.int64),
        gaps=tuple(gaps),
        packets=None if plain else np.array(packets_of, np.int64),
        shifts=tuple(found.shifts),
    )


def salvaged_frames(path: Path, timeline: Timeline, *, turned: bool = True) -> Generator[tuple[int, DecodedFrame]]:
    """Yield the readable frames of ``path``, each with its index in the timeline that ``salvaged`` returned."""
    with opened(path) as container:
        yield from placed(container, Stream(container, turned=turned), timeline)


def placed(
    container: "av.container.InputContainer", stream: Stream, timeline: Timeline, hear: Hear | None = None
) -> Generator[tuple[int, DecodedFrame]]:
    """Yield the readable frames of a container, as ``salvaged_frames`` does; ``hear`` receives its audio packets."""
    numbers = timeline.packets
    places = {} if numbers is None else {number: place for place, number in enumerate(numbers.tolist()) if number >= 0}
    ends = [*timeline.pts.tolist()[1:], timeline.end]
    left = iter(range(len(timeline.pts)) if numbers is None else sorted(places.values()))
    following, held = next(left, None), dict[int, DecodedFrame]()
    for n_shown, picture in enumerate(pictures(container, stream, Found(shifts=[*timeline.shifts]), hear)):
        if (place := n_shown if numbers is None else places.get(picture.pts)) is not None:
            pts = int(timeline.pts[place])
            held[place] = stream.frame(picture, pts, ends[place] - pts)
        while following is not None and following in held:  # after damage, a decoder may return them in another order
            yield following, held.pop(following)
            following = next(left, None)


def pictures(
    container: "av.container.InputContainer", stream: Stream, found: Found, hear: Hear | None = None
) -> Iterator["av.VideoFrame"]:
    """Yield the pictures that can be decoded, each with the index of its packet as ``pts``; fill ``found``.

    hear: receives the packets of the audio.
    """
    start_s, complaints, complaint = stream.start * stream.time_base, stream.complaints, ""
    clock = Clock(container, start_s, found.shifts)
    found.shifts = clock.shifts
    flagged, last = None, None  # the last packet that only the container marks, and the dts of the previous packet
    found.one_each = stream.one_each
    streams = [stream.video, *([stream.sound] if hear and stream.sound else [])]
    for packet in _to_the_end(container, streams, found):
        before = clock.part(packet.stream_index) if packet.size else 0
        shift_s = clock.shift_s(packet) if packet.size else Fraction(0)
        complaint = complaints() or complaint
        if packet.stream is not stream.video and hear:
            _shift(packet, round(shift_s / packet.time_base) if packet.size else 0)
            with complaints.not_of_pictures():
                hear(packet, clock.part(packet.stream_index))
            continue
        if packet.size:
            found.joined |= (joined := clock.part(packet.stream_index) > before)
            if flagged == len(found.pts) - 2 and (joined or _continues(packet, stream, last)):
                found.joined = True
                found.marked.discard(flagged)  # MPEG-TS marks the second last packet before a joint
            if packet.is_corrupt and not complaint:
                flagged = len(found.pts)
            last, found.left_out_s = packet.dts, max(found.left_out_s, float(-shift_s - start_s))
            _shift(packet, round(shift_s / stream.time_base))
            _number(packet, found, complaint)
        else:
            found.end = found.end or complaint
        complaint = ""
        yield from _decoded(packet, found, complaints)


def _continues(packet: "av.Packet[av.VideoStream]", stream: Stream, last: int | None) -> bool:
    """Return whether a packet can begin the next part of a split recording, whose previous packet has the dts ``last``.

    It is a key frame, no frame is missing before it, and the decoder would report a previous picture without its end.
    """
    if last is None or packet.dts is None or not packet.is_keyframe:
        return False
    next_one = 0 < packet.dts - last < 2 * stream.frame_duration
    return next_one and stream.video.codec_context.codec.canonical_name in TRUNCATED


def _to_the_end(
    container: "av.container.InputContainer", streams: Iterable[Any], found: Found
) -> Iterator["av.Packet[Any]"]:
    """Yield all packets, and the empty packets that end the streams, even if the container cannot be read further."""
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


def _number(packet: "av.Packet[av.VideoStream]", found: Found, complaint: str) -> None:
    """Record a packet's times and flags, and replace its times by its index."""
    number = len(found.pts)
    found.pts.append(packet.pts)
    found.duration.append(packet.duration or 0)
    if packet.is_keyframe:
        found.keys.append(number)
    if packet.is_discard:
        found.left_out.add(number)
    if packet.is_corrupt or complaint:
        found.marked.add(number)
    packet.pts = packet.dts = number


def _decoded(packet: "av.Packet[av.VideoStream]", found: Found, complaints: Complaints) -> Iterator["av.VideoFrame"]:
    import av

    try:
        decoded = packet.decode()
    except av.FFmpegError as error:
        if isinstance(error, MemoryError):
            raise
        found.hurt.setdefault(len(found.pts) - 1, f"cannot be decoded: {error.strerror}")
        return
    if complaint := complaints():
        found.hurt.setdefault(len(found.pts) - 1, f"damaged: {complaint}")
    for picture in decoded:
        if picture.pts is not None and 0 <= picture.pts < len(found.pts):
            found.shown.append(picture.pts)
            found.sizes.add((picture.width, picture.height))
            found.one_each &= not picture.interlaced_frame
            if picture.is_corrupt:
                found.hurt.setdefault(picture.pts, "damaged")
            yield picture


def _lost(found: Found, path: Path) -> dict[int, str]:
    """Return the packets whose frames are lost, and the reasons."""
    first = max([min(found.shown, default=len(found.pts)), *found.keys[:1]])
    hurt = dict.fromkeys(range(first), "there is no key frame before it") | dict.fromkeys(found.marked, "damaged")
    hurt |= found.hurt
    for number in {*range(first, len(found.pts))} - {*found.shown} if found.one_each else ():
        pts, start = found.pts[number], found.pts[first]
        if pts is None or start is None or pts > start:
            hurt.setdefault(number, "the decoder does not return it")
    hurt = {number: hurt[number] for number in sorted(hurt.keys() - found.left_out)}
    if not hurt:
        return {}
    predicted = _with_references(path)
    keys = [number for number in found.keys if number not in hurt]
    places = {number: place for place, number in enumerate(found.shown)}
    lost: dict[int, str] = {}
    for number, reason in hurt.items():
        lost.setdefault(number, reason)
        alone = number not in predicted and number in places and number not in found.marked
        if alone:  # its picture was decoded, so its header was read, and the next packet of an intact container is too
            continue
        key, after = [*(key for key in keys if key > number), len(found.pts), len(found.pts)][:2]
        leading = (n for n in range(key + 1, after) if places.get(n, after) < places.get(key, -1))
        for each in (*range(number, key), *leading):
            if each not in found.left_out:
                lost.setdefault(each, reason)
    return lost


def _with_references(path: Path) -> set[int]:
    """Return the packets that are decoded, or fail, if packets are skipped from which no frame is predicted."""
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
    decoded = sorted({*order, *hidden})
    times = [pts for number in decoded if (pts := found.pts[number]) is not None]
    reordered = any(a > b for a, b in pairwise(times)) or order == sorted(order)
    if len(times) == len(decoded) and reordered:
        place = {number: place for place, number in enumerate(order)}
        timed = dict(zip(decoded, times, strict=True))
        return sorted(decoded, key=lambda number: (timed[number], place.get(number, 0)))
    for number in hidden:
        later = (place for place, other in enumerate(order) if other > number)
        order = list(order)
        order.insert(next(later, len(order)), number)
    return order


def _times(numbers: list[int], found: Found, frame_duration: int) -> list[int]:
    """Return the presentation time of each frame and the end of the last one: complete and ascending.

    Frames without a time are spaced evenly between frames that have one.
    """
    places = [place for place, number in enumerate(numbers) if found.pts[number] is not None]
    given = [pts for number in numbers if (pts := found.pts[number]) is not None]
    known = sorted(given)
    if known != given:  # the container has only decoding times
        known = [pts - known[0] for pts in known]
    if not known:
        return [place * frame_duration for place in range(len(numbers) + 1)]
    step = Fraction(known[-1] - known[0], places[-1] - places[0]) if len(known) > 1 else Fraction(frame_duration)
    before = [known[0] - place * step for place in range(places[0], 0, -1)]
    within = np.interp(np.arange(places[0], places[-1] + 1), places, known)
    after = [known[-1] + place * step for place in range(1, len(numbers) - places[-1])]
    times = [round(time) for time in before] + [round(time) for time in within.tolist()] + [round(t) for t in after]
    timed = len(places) == len(numbers)
    return [*times, times[-1] + ((found.duration[numbers[-1]] if timed else round(step)) or frame_duration)]


def _gaps(times: list[int], lost: list[str | None], time_base: Fraction) -> list[Gap]:
    """Return the stretches of lost frames in seconds. times: of each frame, and the end of the last one."""
    gaps: list[Gap] = []
    for place, reason in enumerate(lost):
        if reason is None:
            continue
        start_s, end_s = (float(time * time_base) for time in times[place : place + 2])
        if place and lost[place - 1] is not None:
            gaps[-1] = (gaps[-1][0], end_s, gaps[-1][2])
        else:
            gaps.append((start_s if place else 0.0, end_s, reason))
    return [gap for gap in gaps if gap[1] > gap[0]]

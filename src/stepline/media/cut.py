"""Cut files: an mp4 with only the packets that some spans of a video need, at their original times."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from io import RawIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from stepline.media.decode import MediaError, Probe, Stream, fraction, opened, sound
from stepline.media.spans import Spans, merged

if TYPE_CHECKING:
    import av

MARGIN_S = 1.0
"""The extra time that is copied on both sides of a span, for the audio decoder and for frame rules that look ahead."""
MARK = "stepline cut: "


class WholeOnlyError(MediaError):
    """Spans cannot be copied from this video; it must be read whole."""


class Header(NamedTuple):
    """The header of a file; for a cut file, it describes the whole video.

    frame_rate: libavformat's guess. holds: the spans of a cut file; an empty list means the whole video.
    """

    probe: Probe
    frame_rate: Fraction
    holds: list[list[float]]


def read_header(path: Path) -> Header:
    """Return the header of ``path``. Raises MediaError if it has no video stream."""
    with opened(path) as container:
        stream = Stream(container)
        header = _header(stream)
        header = header._replace(probe=replace(header.probe, rotation=stream.rotation()))
        said = container.metadata.get("comment", "")
    if not said.startswith(MARK):
        return header
    try:
        cut = json.loads(said.removeprefix(MARK))
        whole = replace(header.probe, fps=cut["fps"], duration_s=cut["duration_s"])
        return Header(whole, Fraction(cut["frame_rate"]), cut["spans"])
    except (ValueError, KeyError, TypeError):
        raise MediaError("its list of spans is damaged: fetch it again") from None


def _header(stream: Stream) -> Header:
    return Header(stream.probe(), fraction(stream.video.guessed_rate), [])


def copy_spans(sources: Sequence[Path | RawIOBase], target: Path, spans: Spans) -> None:
    """Copy the packets that ``spans`` need to the mp4 ``target``; each frame keeps its pixels and its time.

    sources: one with video and audio, or one for each. Times count from the start of the video stream, so the file's
    first second is copied too. The following parts of each source are read: its header, and for each span the packets
    from the last key frame before its start minus one second to the first frame after its end plus one second.
    Raises WholeOnlyError if the container cannot seek to a key frame before a span, or an mp4 cannot hold the streams.
    Raises MediaError if a source cannot be read that far. The source's own OSError or SteplineError is not changed.
    """
    import av

    with _errors_of_one_line(), ExitStack() as stack:
        containers = [stack.enter_context(_open(source)) for source in sources]
        pictures = Stream(containers[0])
        header, frame_rate, _ = _header(pictures)
        cut = {
            "spans": [list(span) for span in spans],
            "fps": header.fps,
            "frame_rate": str(frame_rate),
            "duration_s": header.duration_s,
        }
        heard = sound(containers[-1])
        sounds = [heard] if heard else []
        clock = heard.codec_context.sample_rate if heard and heard.codec_context else 1000
        timescales = {"video_track_timescale": pictures.time_base.denominator, "movie_timescale": clock}
        options = {name: str(value) for name, value in timescales.items()} | {"fflags": "+bitexact"}
        with av.open(str(target), "w", format="mp4", options=options) as out:
            out.metadata["comment"] = MARK + json.dumps(cut)
            try:
                copies = {stream: _Copy(out, stream, header.start_s) for stream in (pictures.video, *sounds)}
                out.start_encoding()
            except (av.FFmpegError, ValueError):
                raise WholeOnlyError(f"an mp4 cannot hold {header.codec} or its sound") from None
            groups = [(container, [s for s in copies if s.container is container]) for container in containers]
            wider = [(start_s - MARGIN_S, end_s + MARGIN_S) for start_s, end_s in spans]
            for start_s, end_s in merged([(0.0, 0.0), *wider], gap_s=0):
                if start_s > (header.duration_s or start_s):
                    break
                for container, streams in groups:
                    if streams:
                        _copy(container, [copies[stream] for stream in streams], max(0.0, start_s), end_s)
            reached_s, wanted_s = copies[pictures.video].end_s, min(header.duration_s, spans[-1][1])
            if reached_s < wanted_s - max(1.0, 0.01 * header.duration_s):
                raise MediaError(f"truncated: {reached_s:.1f} s of {header.duration_s:.1f} s can be read")


class _Copy:
    """A stream of a source, and its copy."""

    def __init__(self, out: "av.container.OutputContainer", stream: Any, start_s: Fraction) -> None:
        self.stream = stream
        self.end_s = 0.0
        self._out = out
        self._copied = out.add_stream_from_template(stream)
        self._time_base = fraction(stream.time_base)
        self._shift = round(start_s / self._time_base)
        self._last: int | None = None

    def pts_at(self, time_s: float) -> int:
        """Return ``time_s`` on the container's clock, rounded down."""
        return int(Fraction(time_s) / self._time_base) + self._shift

    def add(self, packet: "av.Packet[Any]") -> None:
        """Copy a packet, unless it is already copied."""
        assert packet.pts is not None
        assert packet.dts is not None
        if self._last is not None and packet.dts <= self._last:
            return
        self._last = packet.dts
        self.end_s = max(self.end_s, float((packet.pts + (packet.duration or 0) - self._shift) * self._time_base))
        packet.pts -= self._shift
        packet.dts -= self._shift
        packet.stream = self._copied
        self._out.mux(packet)


def _copy(container: "av.container.InputContainer", copies: Sequence[_Copy], start_s: float, end_s: float) -> None:
    """Copy packets from the last key frame at or before ``start_s`` to the first frame per stream from ``end_s`` on."""
    first = copies[0]
    if start_s:
        container.seek(first.pts_at(start_s), stream=first.stream)
    entered = not start_s
    last: dict[_Copy, int] = {}
    over: set[_Copy] = set()
    by_stream = {copy.stream.index: copy for copy in copies}
    for packet in container.demux([copy.stream for copy in copies]):
        copy = by_stream[packet.stream_index]
        if packet.size == 0 or copy in over:
            continue
        pts = _checked(packet)
        if not entered and copy is first:
            if not packet.is_keyframe or pts > first.pts_at(start_s):
                raise WholeOnlyError(f"its container cannot seek to a key frame before {start_s:.3f} s")
            entered = True
        if pts >= copy.pts_at(end_s):
            last[copy] = min(pts, last.get(copy, pts))
        if copy in last and cast(int, packet.dts) > last[copy]:
            over.add(copy)
            if len(over) == len(copies):
                return
            continue
        copy.add(packet)


def _checked(packet: "av.Packet[Any]") -> int:
    """Return the packet's presentation time; raise MediaError if it has none or is damaged."""
    if packet.pts is None or packet.dts is None:
        raise WholeOnlyError("its packets have no times")
    if packet.is_corrupt:
        raise MediaError(f"damaged at {float(packet.pts * fraction(packet.time_base)):.3f} s")
    return packet.pts


def _open(source: Path | RawIOBase) -> "av.container.InputContainer":
    import av

    file = str(source) if isinstance(source, Path) else source
    return cast("av.container.InputContainer", av.open(file, metadata_errors="replace"))


@contextmanager
def _errors_of_one_line() -> Iterator[None]:
    import av

    try:
        yield
    except av.FFmpegError as error:
        if isinstance(error, MemoryError):
            raise
        raise MediaError(f"cannot be read: {error.strerror}") from None

"""Video frames with their presentation times, decoded sequentially."""

import re
from collections.abc import Container, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from stepline.errors import SteplineError

if TYPE_CHECKING:
    import av

Image = NDArray[np.uint8]


PLAYLISTS = frozenset(("concat", "dash", "hls", "imf", "rtsp", "sdp", "webm_dash_manifest"))
"""Formats of ffmpeg that only name other files."""


class MediaError(SteplineError):
    """A video or its audio that cannot be read whole: absent, not a video, damaged or truncated."""


class MissedKeyError(MediaError):
    """A container that cannot be entered at a key frame."""


class Frame(Protocol):
    """One frame of a reader."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""

    def square(self) -> "Frame":
        """Return the largest square in the middle, as ffmpeg crops 4:2:0 video: its side and offsets are even."""

    def rgb(self, width: int = 0, height: int = 0) -> Image:
        """Return the picture as (height, width, 3) RGB, scaled to the given size (bicubic), else as it is."""


class Cropper:
    """ffmpeg's crop filter, set up once for pictures of the same size and format."""

    def __init__(self) -> None:
        self._kind: tuple[int, int, str] | None = None

    def square(self, picture: "av.VideoFrame") -> "av.VideoFrame":
        """Return the largest square in the middle."""
        kind = picture.width, picture.height, picture.format.name
        if kind != self._kind:
            self._kind = kind
            self._set_up(picture)
        self._source.push(picture)
        return cast("av.VideoFrame", self._sink.pull())

    def _set_up(self, picture: "av.VideoFrame") -> None:
        import av

        side = min(picture.width, picture.height)
        self._graph = av.filter.Graph()
        self._source = self._graph.add_buffer(
            width=picture.width, height=picture.height, format=picture.format, time_base=fraction(picture.time_base)
        )
        crop, self._sink = self._graph.add("crop", f"{side}:{side}"), self._graph.add("buffersink")
        self._source.link_to(crop)
        crop.link_to(self._sink)
        self._graph.configure()


@dataclass(frozen=True)
class DecodedFrame:
    """A frame of PyAV: shown from ``pts`` x ``time_base`` seconds on, counted from the start of the video stream.

    duration: how long, in the same units. frame_rate: of the stream, as libavformat guesses it. scaler and
    cropper: serve all frames of a stream.
    """

    pts: int
    time_base: Fraction
    duration: int
    frame_rate: Fraction
    picture: "av.VideoFrame"
    scaler: "av.video.reformatter.VideoReformatter"
    cropper: Cropper

    @property
    def t_s(self) -> float:
        """The presentation time, rounded once."""
        return self.pts * self.time_base.numerator / self.time_base.denominator

    @property
    def end_s(self) -> float:
        """When the frame is no longer shown."""
        return float((self.pts + self.duration) * self.time_base)

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        return self.picture.width, self.picture.height

    def square(self) -> "DecodedFrame":
        """Return the largest square in the middle, as ffmpeg crops it: where chroma is shared, offsets are even."""
        return replace(self, picture=self.cropper.square(self.picture))

    def rgb(self, width: int = 0, height: int = 0) -> Image:
        """Return the picture as (height, width, 3) RGB, scaled to the given size (bicubic), else as it is."""
        scaled = self.scaler.reformat(
            self.picture, width or None, height or None, "rgb24", interpolation="BICUBIC", threads=1
        )
        return cast(Image, scaled.to_ndarray())

    def bgr(self) -> Image:
        """Return the picture as (height, width, 3) BGR."""
        return cast(Image, self.scaler.reformat(self.picture, format="bgr24", threads=1).to_ndarray())


@dataclass(frozen=True)
class ArrayFrame:
    """A (height, width, 3) RGB picture as a frame."""

    image: Image

    @property
    def size(self) -> tuple[int, int]:
        """Width and height in pixels."""
        height, width, _ = self.image.shape
        return width, height

    def square(self) -> "ArrayFrame":
        """Return the largest square in the middle, as ffmpeg crops 4:2:0 video: its side and offsets are even."""
        side = min(self.size) & ~1
        left, top = ((length - side) // 2 & ~1 for length in self.size)
        return ArrayFrame(np.ascontiguousarray(self.image[top : top + side, left : left + side]))

    def rgb(self, width: int = 0, height: int = 0) -> Image:
        """Return the picture as (height, width, 3) RGB, scaled to the given size (bicubic), else as it is."""
        import av

        if not width:
            return self.image
        scaled = av.VideoFrame.from_ndarray(self.image, "rgb24").reformat(
            width, height, interpolation="BICUBIC", threads=1
        )
        return cast(Image, scaled.to_ndarray())


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What a container says of its first video stream.

    container: ffmpeg's name of the format. codec: its name of the video's. duration_s: 0 where the container does not
    say. start_s: where the stream starts on the container's clock.
    """

    container: str
    codec: str
    width: int
    height: int
    fps: float
    duration_s: float
    start_s: Fraction
    has_audio: bool


def probe(path: Path) -> Probe:
    """Return what the header of ``path`` says. Raises MediaError where it has no video stream."""
    with opened(path) as container:
        return Stream(container).probe()


@contextmanager
def opened(path: Path) -> Iterator["av.container.InputContainer"]:
    """Open ``path``, and no other file or address that it names.

    An error of the decoder in the block is raised as MediaError, want of memory as MemoryError.
    """
    import av

    try:
        with av.open(str(path), options={"protocol_whitelist": "file"}) as container:
            if container.format.name.split(",")[0] in PLAYLISTS:
                raise MediaError("it is a playlist, not a video")
            yield container
    except av.FFmpegError as error:
        if isinstance(error, MemoryError):
            raise
        reason = getattr(error, "strerror", None) or error
        if isinstance(error, av.InvalidDataError):
            reason = f"{'no video, or damaged' if path.stat().st_size else 'it is empty'} ({reason})"
        raise MediaError(f"cannot be decoded: {reason}") from None


class Stream:
    """The first video stream of a container, and the decoder of its packets.

    A cover picture is none. Raises MediaError where there is no stream.
    """

    def __init__(self, container: "av.container.InputContainer") -> None:
        """Find the stream; decode nothing yet."""
        from av.stream import Disposition
        from av.video.reformatter import VideoReformatter

        videos = [each for each in container.streams.video if not each.disposition & Disposition.attached_pic]
        if not videos:
            raise MediaError("no video stream")
        self.video = videos[0]
        if self.video.codec_context is None:
            raise MediaError("the video's codec is unknown")
        self.video.codec_context.thread_count = 1  # a job has one core; more threads cost a tenth more time in all
        self.time_base = fraction(self.video.time_base)
        self.start = self.video.start_time or 0
        self._container = container
        self._size = self.video.width, self.video.height
        self._frame_rate = fraction(self.video.guessed_rate)
        self._last: DecodedFrame | None = None
        self._scaler, self._cropper = VideoReformatter(), Cropper()

    def probe(self) -> Probe:
        """Return what the container says."""
        return Probe(
            container=self._container.format.name,
            codec=self.video.codec_context.codec.canonical_name,
            width=self.video.width,
            height=self.video.height,
            fps=float(self.video.average_rate or self.video.guessed_rate or 0),
            duration_s=self._declared_s(),
            start_s=self.start * self.time_base,
            has_audio=bool(self._container.streams.audio),
        )

    def _declared_s(self) -> float:
        own_s = self._own_s()
        if own_s is not None:
            return own_s
        end_s = ((self._container.start_time or 0) + (self._container.duration or 0)) / 1_000_000
        return max(0.0, end_s - float(self.start * self.time_base))

    def _own_s(self) -> float | None:
        if self.video.duration is not None:
            return float(self.video.duration * self.time_base)
        end = re.fullmatch(r"(\d+):(\d+):(\d+\.?\d*)", self.video.metadata.get("DURATION", ""))
        if end is None:
            return None
        end_s = sum(float(part) * unit for part, unit in zip(end.groups(), (3600, 60, 1), strict=True))
        return max(0.0, end_s - float(self.start * self.time_base))  # Matroska's tag says when the stream ends

    def decode(self, packet: "av.Packet[av.VideoStream]") -> Iterator[DecodedFrame]:
        """Yield the frames that come out for a packet, in order of presentation; the empty packet ends the stream.

        Raises MediaError where the stream is damaged, or ends before its header says.
        """
        import av

        try:
            pictures = packet.decode()
        except av.InvalidDataError as error:
            after = f" after {self._last.end_s:.3f} s" if self._last else ""
            raise MediaError(f"cannot be decoded{after}: {error.strerror}") from None
        for picture in pictures:
            if picture.pts is None:
                raise MediaError("a frame has no presentation time")
            time_base = fraction(picture.time_base)
            pts = picture.pts - self.start
            if self._last is not None and pts < self._last.pts:
                raise MediaError(f"presentation times go back at {self._last.t_s:.3f} s")
            if (picture.width, picture.height) != self._size:
                raise MediaError(f"the picture changes its size at {float(pts * time_base):.3f} s")
            duration = picture.duration or max(1, round(1 / self._frame_rate / time_base))
            serving = self._scaler, self._cropper
            self._last = DecodedFrame(pts, time_base, duration, self._frame_rate, picture, *serving)
            yield self._last
        if packet.size == 0:
            if self._last is None:
                raise MediaError("no frame could be decoded")
            self.check_end(self._last.end_s)

    def check_end(self, end_s: float) -> None:
        """Raise MediaError where a last frame that is shown until ``end_s`` is not the last by the header."""
        declared_s = self._declared_s()
        least_s = declared_s - max(1.0, 0.01 * declared_s)
        if end_s < least_s and (self._own_s() is not None or self._last_packet_s() < least_s):
            raise MediaError(f"truncated: {end_s:.1f} s of {declared_s:.1f} s can be decoded")

    def _last_packet_s(self) -> float:
        """Return when the last packet of any stream ends: a container's length may be that of its sound."""
        with opened(Path(self._container.name)) as container:
            ends = [
                ((packet.pts or packet.dts or 0) + (packet.duration or 0)) * fraction(packet.time_base)
                for packet in container.demux()
                if packet.size
            ]
        return float(max(ends) - self.start * self.time_base)


def frames(path: Path, *, wanted: Container[int] | None = None, key: int | None = None) -> Generator[DecodedFrame]:
    """Yield the frames of the first video stream, in order of presentation.

    wanted: the ``pts`` of the frames that will be looked at; of the others, those that no frame is predicted from are
        not decoded and not yielded. What is yielded is the same, bit by bit, as without it. By default all.
    key: the ``pts`` of a key frame to start at; some containers lead to one before it. By default the first.
    Raises MediaError, after the frames that could be read, where the file is damaged or ends before its header says;
    MissedKeyError, before any frame, where the container does not lead to ``key``.
    """
    with opened(path) as container:
        stream = Stream(container)
        context = stream.video.codec_context
        packets = container.demux(stream.video)
        if key is not None:
            container.seek(key + stream.start, stream=stream.video)
            packet = next(packets)
            if not packet.is_keyframe or packet.pts is None or packet.pts > key + stream.start:
                raise MissedKeyError(f"cannot be entered at {float(key * stream.time_base):.3f} s")
            packets = chain([packet], packets)
        for packet in packets:
            if wanted is not None and packet.pts is not None:
                context.skip_frame = "DEFAULT" if packet.pts - stream.start in wanted else "NONREF"
            yield from stream.decode(packet)


def fraction(value: Fraction | None) -> Fraction:
    """Return a rate or time base as a Fraction. Raises MediaError where there is none."""
    if not value:
        raise MediaError("the stream has no frame rate or time base")
    return Fraction(value.numerator, value.denominator)

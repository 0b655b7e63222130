"""Sequential decoding of video frames with their presentation times."""

import re
from collections.abc import Container, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.errors import SteplineError
from stepline.media.frame import DecodedFrame, Filters, rotation
from stepline.media.tiff import wrongly_decoded

if TYPE_CHECKING:
    import av


PLAYLISTS = frozenset(("concat", "dash", "hls", "imf", "rtsp", "sdp", "webm_dash_manifest"))
"""Formats of ffmpeg that only refer to other files."""


class MediaError(SteplineError):
    """A video or its audio cannot be read: it is absent, not a video, or damaged."""


class DamagedError(MediaError):
    """A file's frames do not match its container; ``salvage`` reads the remaining frames."""


class MissedKeyError(MediaError):
    """A container cannot seek to a key frame."""


FIRST = 64
"""The maximum number of packets that are decoded to find the rotation of the first picture."""
ONE_EACH = frozenset(("av1", "h264", "hevc", "mpeg1video", "mpeg2video"))
"""Codecs in which each packet is one frame, unless fields have packets of their own."""
SHORT_S = 0.1
"""How much earlier than its header states a video may end; at least two frames."""
PARTS = "stepline cut: "
"""The start of the comment in files of earlier versions that have only some spans of a video."""
LATE_S = Fraction(1, 2)
"""The maximum delay of a video's first picture after its audio for which time 0 is still at this picture."""


@dataclass(frozen=True, kw_only=True)
class Probe:
    """A container's description of the video stream that is read.

    codec: ffmpeg's name. stream: its place among the container's video streams. width, height: of the pictures as
    stored. pixels: width and height of a stored pixel, such as ``2:1``. duration_s: 0 if the container does not state
    it. start_s: time 0 on the container's clock. It is at the first picture, or at the start of the audio if the
    picture is more than half a second later. begin_s: the time of the first picture, 0 in the first case. rotation: of
    the first picture, see ``rotation``; 0 if it cannot be decoded. audio_tracks: their number.
    """

    codec: str
    stream: int
    width: int
    height: int
    pixels: str
    fps: float
    duration_s: float
    start_s: Fraction
    begin_s: float
    rotation: int
    audio_tracks: int


@contextmanager
def opened(path: Path) -> Iterator["av.container.InputContainer"]:
    """Open ``path``, but no other file or address that it refers to.

    Errors of the decoder in the block are raised as MediaError, lack of memory as MemoryError.
    """
    import av

    try:
        with av.open(str(path), options={"protocol_whitelist": "file"}, metadata_errors="replace") as container:
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


BENIGN = re.compile("SEI|mmco: unref")
"""Messages that libav logs as errors although they affect no picture."""


class Complaints:
    """Errors that libav logs while it continues: a picture is wrong, or data is left out."""

    def __init__(self) -> None:
        """Ignore earlier errors."""
        import av

        av.logging.set_level(av.logging.PANIC)  # errors are counted but not printed
        self._seen, _ = av.logging.get_last_error()

    @contextmanager
    def not_of_pictures(self) -> Iterator[None]:
        """Ignore the errors of this block."""
        yield
        self()

    def __call__(self) -> str:
        """Return the last error since the previous call, or ""."""
        import av

        seen, last = av.logging.get_last_error()
        new, self._seen = seen > self._seen, seen
        message = str(last[2]).strip() if new and last else ""
        return "" if BENIGN.search(message) else message


def sound(container: "av.container.InputContainer", track: int | None = None) -> "av.AudioStream | None":
    """Return the audio stream with this number, counted from 1, or None.

    Without a number, return the first that is flagged as default, or the first one, or None.
    """
    from av.stream import Disposition

    streams = container.streams.audio
    if track is not None:
        return streams[track - 1] if track <= len(streams) else None
    return next((each for each in streams if each.disposition & Disposition.default), next(iter(streams), None))


def packets(container: "av.container.InputContainer", *streams: "av.stream.Stream") -> Iterator["av.Packet[Any]"]:
    """Yield the packets of some streams; raise DamagedError if the container cannot be read further."""
    import av

    try:
        yield from container.demux(*streams)
    except av.FFmpegError as error:
        if isinstance(error, MemoryError):
            raise
        raise DamagedError(f"cannot be read: {error.strerror}") from None


class Stream:
    """The video stream of a container that is flagged as default, or the first one, and the decoder of its packets.

    Cover pictures, thumbnails and parts of a picture do not count. Raises MediaError if there is no video stream, or
    its pictures would be decoded wrongly without an error.
    """

    def __init__(
        self, container: "av.container.InputContainer", *, turned: bool = True, track: int | None = None
    ) -> None:
        """Find the stream; nothing is decoded yet.

        turned: pictures are upright if True, otherwise as stored. track: the number of the audio track, see ``sound``.
        """
        from av.stream import Disposition
        from av.video.reformatter import VideoReformatter

        others = Disposition.attached_pic | Disposition.dependent
        self.videos = [each for each in container.streams.video if not each.disposition & others]
        if not self.videos:
            raise MediaError("no video stream")
        flagged = (each for each in self.videos if each.disposition & Disposition.default)
        self.video = next(flagged, self.videos[0])
        context = self.video.codec_context
        if context is None:
            raise MediaError("the video's codec is unknown")
        tiff = context.codec.canonical_name == "tiff"
        if tiff and (reason := wrongly_decoded(Path(container.name), context.pix_fmt or "")):
            raise MediaError(f"TIFF with {reason} cannot be decoded: convert it, for example to PNG")
        context.thread_count = 1  # a job has one core; more threads need a tenth more CPU time
        self.sound = sound(container, track)
        self.time_base = fraction(self.video.time_base)
        self.start = self._start(sound(container))
        self.frame_rate = fraction(self.video.guessed_rate)
        self.pixels = self.video.sample_aspect_ratio or Fraction(1)
        self._container = container
        self._size = self.video.width, self.video.height
        self._turned, self._scaler, self._filters = turned, VideoReformatter(), Filters()
        self._angle: int | None = None
        self._turn = 0
        self._last: DecodedFrame | None = None
        self._first: int | None = None
        self._due: set[int] = set()
        self._n_packets = 0
        self.complaints = Complaints()

    def _start(self, heard: "av.AudioStream | None") -> int:
        """Return time 0 on the stream's clock. heard: the default audio track."""
        start = self.video.start_time or 0
        if heard is None or heard.start_time is None or self.video.start_time is None:
            return start
        heard_s = heard.start_time * fraction(heard.time_base)
        return start if start * self.time_base - heard_s <= LATE_S else round(heard_s / self.time_base)

    def probe(self) -> Probe:
        """Return the container's description. It decodes the first picture."""
        return Probe(
            codec=self.video.codec_context.codec.canonical_name,
            stream=self.videos.index(self.video),
            width=self.video.width,
            height=self.video.height,
            pixels=f"{self.pixels.numerator}:{self.pixels.denominator}",
            fps=float(self.video.average_rate or self.video.guessed_rate or 0),
            duration_s=self.declared_s(),
            start_s=self.start * self.time_base,
            begin_s=float(((self.video.start_time or 0) - self.start) * self.time_base),
            audio_tracks=len(self._container.streams.audio),
            rotation=self.rotation(),
        )

    def rotation(self) -> int:
        """Decode the first picture and return its ``rotation``, or 0 if it cannot be decoded."""
        import av

        packets = islice(self._container.demux(self.video), FIRST)
        try:
            return next((rotation(picture) for packet in packets for picture in packet.decode()), 0)
        except av.FFmpegError as error:
            if isinstance(error, MemoryError):
                raise
            return 0

    def declared_s(self) -> float:
        """Return the end of the video by its header, in seconds; 0 if the header does not state it."""
        own_s = self._own_s()
        return self._container_s() if own_s is None else own_s

    def _container_s(self) -> float:
        end_s = ((self._container.start_time or 0) + (self._container.duration or 0)) / 1_000_000
        return max(0.0, end_s - float(self.start * self.time_base))

    def _own_s(self) -> float | None:
        start_s = float(self.start * self.time_base)
        if self.video.duration is not None:
            return float(((self.video.start_time or 0) + self.video.duration) * self.time_base) - start_s
        end = re.fullmatch(r"(\d+):(\d+):(\d+\.?\d*)", self.video.metadata.get("DURATION", ""))
        if end is None:
            return None
        end_s = sum(float(part) * unit for part, unit in zip(end.groups(), (3600, 60, 1), strict=True))
        return max(0.0, end_s - start_s)  # Matroska's tag states the end of the stream

    def frame(self, picture: "av.VideoFrame", pts: int, duration: int) -> DecodedFrame:
        """Return a picture of the stream as a frame that is shown from ``pts`` on, counted from time 0."""
        serving = self._turn_of(picture), self._scaler, self._filters
        return DecodedFrame(pts, self.time_base, duration, self.frame_rate, self.pixels, picture, *serving)

    def _turn_of(self, picture: "av.VideoFrame") -> int:
        """Return the picture's ``rotation``. It is read only when the angle changes, as reading it keeps memory."""
        if self._turned and picture.rotation != self._angle:
            self._angle, self._turn = picture.rotation, rotation(picture)
        return self._turn

    def decode(self, packet: "av.Packet[av.VideoStream]", *, after: int | None = None) -> Iterator[DecodedFrame]:
        """Yield the frames of a packet, in order of presentation; the empty packet ends the stream.

        after: a ``pts``; frames before it may be damaged, for example if decoding starts at a key frame. Raises
        DamagedError if the stream is damaged, a frame is missing, or the stream ends before its header states.
        """
        import av

        self._n_packets += packet.size > 0
        self._check(packet, after)
        try:
            pictures = packet.decode()
        except av.FFmpegError as error:
            if isinstance(error, MemoryError):
                raise
            raise DamagedError(f"cannot be decoded{self._after()}: {error.strerror}") from None
        reason = self.complaints()
        if reason and (after is None or packet.pts is None or packet.pts - self.start >= after):
            raise DamagedError(f"damaged{self._after()}: {reason}")
        for picture in pictures:
            self._last = self._checked(picture, after)
            yield self._last
        if packet.size == 0:
            if self._last is None or self._first is None:
                raise DamagedError("no frame could be decoded")
            if any(pts > self._first for pts in self._due):
                raise DamagedError(f"{len(self._due)} frames are missing in the decoder's output")
            if reason := self.missing_end(self._last.end_s, self._n_packets if after is None else None):
                raise DamagedError(reason)

    def _check(self, packet: "av.Packet[av.VideoStream]", after: int | None) -> None:
        if self._n_packets == 1 and packet.size and after is None and not packet.is_keyframe:
            raise DamagedError("it does not begin with a key frame")
        if packet.is_corrupt or self.complaints():
            raise DamagedError(f"damaged{self._after()}")
        if self.decodes_alone:
            raise DamagedError("the container has no presentation times")
        if packet.pts is not None and not packet.is_discard and self.video.codec_context.skip_frame == "DEFAULT":
            self._due.add(packet.pts - self.start)

    def _checked(self, picture: "av.VideoFrame", after: int | None) -> DecodedFrame:
        if picture.pts is None:
            raise DamagedError("a frame has no presentation time")
        pts = picture.pts - self.start
        if picture.is_corrupt and (after is None or pts >= after):
            raise DamagedError(f"damaged{self._after()}")
        if self._last is not None and pts < self._last.pts:
            raise DamagedError(f"presentation times go back at {self._last.t_s:.3f} s")
        if (picture.width, picture.height) != self._size:
            raise DamagedError(f"the picture changes its size at {float(pts * self.time_base):.3f} s")
        if self._first is None:
            self._first = pts
        self._due.discard(pts)
        if picture.interlaced_frame or not self.one_each:
            self._due.clear()
        return self.frame(picture, pts, picture.duration or self.frame_duration)

    @property
    def one_each(self) -> bool:
        """Whether each packet is one frame; in interlaced video, it may be two packets per frame."""
        return self.video.codec_context.codec.canonical_name in ONE_EACH

    @property
    def decodes_alone(self) -> bool:
        """Whether the container has decoding times but no presentation times: AVI with B-frames."""
        return self._container.format.name == "avi" and self.video.codec_context.has_b_frames

    @property
    def frame_duration(self) -> int:
        """The duration of a frame that does not state its own, in units of the time base."""
        return max(1, round(1 / self.frame_rate / self.time_base))

    def _after(self) -> str:
        return f" after {self._last.end_s:.3f} s" if self._last else ""

    def missing_end(self, end_s: float, n_packets: int | None) -> str:
        """Return the reason if the video should continue after ``end_s``, the end of its last frame, or "".

        n_packets: the number of packets of the whole container, None if it is unknown.
        """
        declared_s, own = self.declared_s(), self._own_s() is not None
        if self._container.format.name.startswith("mov,") and self.video.frames:
            if n_packets is None or n_packets >= self.video.frames:
                return ""
            declared_s, own = self._container_s(), False  # an edit list may leave frames out
        least_s = declared_s - max(SHORT_S, 2 * float(self.frame_duration * self.time_base))
        if end_s < least_s and (own or self._last_packet_s() < least_s):
            return f"truncated: {end_s:.1f} s of {declared_s:.1f} s can be decoded"
        return ""

    def _last_packet_s(self) -> float:
        """Return the end of the last packet of any stream: a container's length may be the length of its audio."""
        with opened(Path(self._container.name)) as container:
            ends = [
                ((packet.pts or packet.dts or 0) + (packet.duration or 0)) * fraction(packet.time_base)
                for packet in container.demux()
                if packet.size
            ]
        return float(max(ends) - self.start * self.time_base)


def read_header(path: Path) -> Probe:
    """Return the header of ``path``; raise MediaError if it has no video stream, or only parts of a video."""
    with opened(path) as container:
        if container.metadata.get("comment", "").startswith(PARTS):
            raise MediaError("an earlier version downloaded only parts of this video: replace it by the whole video")
        return Stream(container).probe()


def frames(
    path: Path, *, wanted: Container[int] | None = None, key: int | None = None, turned: bool = True
) -> Generator[DecodedFrame]:
    """Yield the frames of the video stream, in order of presentation.

    wanted: the ``pts`` of the frames that will be used. Other frames from which no frame is predicted are neither
        decoded nor yielded. The yielded frames are bit-identical with and without it. By default all.
    key: the ``pts`` of a key frame to start at; some containers seek to an earlier one. By default the first.
    turned: pictures are upright if True, otherwise as stored.
    Raises DamagedError, after the readable frames, if the file is damaged or ends before its header states, and
    MissedKeyError, before any frame, if the container cannot seek to ``key``.
    """
    with opened(path) as container:
        stream = Stream(container, turned=turned)
        context = stream.video.codec_context
        demuxed = packets(container, stream.video)
        if key is not None:
            container.seek(key + stream.start, stream=stream.video)
            packet = next(demuxed)
            if not packet.is_keyframe or packet.pts is None or packet.pts > key + stream.start:
                raise MissedKeyError(f"cannot seek to {float(key * stream.time_base):.3f} s")
            demuxed = chain([packet], demuxed)
        for packet in demuxed:
            if wanted is not None and packet.pts is not None:
                context.skip_frame = "DEFAULT" if packet.pts - stream.start in wanted else "NONREF"
            yield from stream.decode(packet, after=key)


def fraction(value: Fraction | None) -> Fraction:
    """Return a rate or time base as a Fraction. Raises MediaError if there is none."""
    if not value:
        raise MediaError("the stream has no frame rate or time base")
    return Fraction(value.numerator, value.denominator)

"""Video frames by presentation time, decoded sequentially."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from stepline.errors import SteplineError

if TYPE_CHECKING:
    import av

Image = NDArray[np.uint8]


class MediaError(SteplineError):
    """A video or its audio that cannot be read whole: absent, not a video, damaged or truncated."""


@dataclass(frozen=True)
class Frame:
    """One decoded frame: shown from ``t_s``, for ``duration_s``; seconds from the start of the video stream.

    ``pts`` x ``time_base`` is the same time, exactly.
    """

    pts: int
    time_base: Fraction
    duration_s: float
    picture: "av.VideoFrame"

    @property
    def t_s(self) -> float:
        """The presentation time, rounded once."""
        return self.pts * self.time_base.numerator / self.time_base.denominator

    @property
    def end_s(self) -> float:
        """When the frame is no longer shown."""
        return self.t_s + self.duration_s

    def rgb(self) -> Image:
        """The picture as (height, width, 3) RGB."""
        return cast(Image, self.picture.to_ndarray(format="rgb24"))

    def bgr(self) -> Image:
        """The picture as (height, width, 3) BGR."""
        return cast(Image, self.picture.to_ndarray(format="bgr24"))


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What a container says of its first video stream.

    codec: ffmpeg's name of it. duration_s: 0 where the container does not say. start_s: where the stream starts on the
    container's clock.
    """

    codec: str
    width: int
    height: int
    fps: float
    duration_s: float
    start_s: Fraction
    has_audio: bool


def probe(path: Path) -> Probe:
    """Return what the header of ``path`` says. Raises MediaError where it has no video stream."""
    import av

    try:
        with av.open(str(path)) as container:
            stream = _video_stream(container)
            return Probe(
                codec=stream.codec_context.name,
                width=stream.width,
                height=stream.height,
                fps=float(stream.average_rate or stream.guessed_rate or 0),
                duration_s=_declared_s(container, stream),
                start_s=(stream.start_time or 0) * fraction(stream.time_base),
                has_audio=bool(container.streams.audio),
            )
    except av.FFmpegError as error:
        raise unreadable(error) from None


def frames(path: Path) -> Iterator[Frame]:
    """Yield every frame of the first video stream, in order of presentation.

    Raises MediaError, after the frames that could be read, where the file is damaged or ends before its header says.
    """
    import av

    try:
        with av.open(str(path)) as container:
            stream = _video_stream(container)
            stream.thread_type = "AUTO"
            origin, size, frame = stream.start_time, (stream.width, stream.height), None
            for picture in container.decode(stream):
                if picture.pts is None:
                    raise MediaError("a frame has no presentation time")
                time_base = fraction(picture.time_base)
                origin = picture.pts if origin is None else origin
                pts = picture.pts - origin
                if frame is not None and pts < frame.pts:
                    raise MediaError(f"presentation times go back at {frame.t_s:.3f} s")
                if (picture.width, picture.height) != size:
                    raise MediaError(f"the picture changes its size at {float(pts * time_base):.3f} s")
                duration = picture.duration * time_base if picture.duration else 1 / fraction(stream.guessed_rate)
                frame = Frame(pts, time_base, float(duration), picture)
                yield frame
            if frame is None:
                raise MediaError("no frame could be decoded")
            declared_s = _declared_s(container, stream)
            if frame.end_s < declared_s - max(1.0, 0.01 * declared_s):
                raise MediaError(f"truncated: {frame.end_s:.1f} s of {declared_s:.1f} s can be decoded")
    except av.FFmpegError as error:
        raise unreadable(error) from None


def at_or_before(path: Path, times_s: Iterable[float]) -> Iterator[Image]:
    """Yield, for each time, the last frame with a presentation time <= it, as RGB; one sequential pass.

    times_s: ascending, in seconds from the start of the video stream; may be endless. Give k / fps, not k * hop: so a
        time that falls on a frame gets that frame. The pass ends at the first time at which no frame is shown any more.
        A time before the first frame takes the first.
    Raises MediaError as ``frames`` does, and ValueError where the times descend.
    """
    times = iter(times_s)
    time = next(times, None)
    shown: Frame | None = None
    image: Image | None = None
    for frame in frames(path):
        while shown is not None and time is not None and time < frame.t_s:
            image = shown.rgb() if image is None else image
            yield image
            time = _next(times, time)
        if time is None:
            return
        shown, image = frame, None
    while shown is not None and time is not None and time < shown.end_s:
        image = shown.rgb() if image is None else image
        yield image
        time = _next(times, time)


def _next(times: Iterator[float], last: float) -> float | None:
    time = next(times, None)
    if time is not None and time < last:
        raise ValueError(f"times must ascend: {time} follows {last}")
    return time


def _video_stream(container: "av.container.InputContainer") -> "av.VideoStream":
    if not container.streams.video:
        raise MediaError("no video stream")
    stream = container.streams.video[0]
    if stream.codec_context is None:
        raise MediaError("the video's codec is unknown")
    return stream


def _declared_s(container: "av.container.InputContainer", stream: "av.VideoStream") -> float:
    if stream.duration is not None:
        return float(stream.duration * fraction(stream.time_base))
    return (container.duration or 0) / 1_000_000


def fraction(value: Fraction | None) -> Fraction:
    """Return a rate or time base as a Fraction. Raises MediaError where there is none."""
    if not value:
        raise MediaError("the stream has no frame rate or time base")
    return Fraction(value.numerator, value.denominator)


def unreadable(error: Exception) -> MediaError:
    """Return what the decoder's error means for the video."""
    return MediaError(f"cannot be decoded: {getattr(error, 'strerror', None) or error}")

"""Undamaged files in the containers and codecs that libav writes, each frame with its index painted in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.processes import ordinary

Image = NDArray[np.uint8]
FPS = 25
EXACT = {"fflags": "+bitexact"}
"""Options of a muxer that writes the same bytes each time."""
X264 = {"preset": "ultrafast", "qp": "18", "x264-params": "keyint=12:min-keyint=12:scenecut=0:bframes=2"}
OPEN = X264 | {"x264-params": X264["x264-params"] + ":open-gop=1"}
BASELINE = X264 | {"x264-params": X264["x264-params"].replace("bframes=2", "bframes=0")}
PLAIN = {"g": "12", "flags": "+qscale", "global_quality": "354"}
INTRA = {"flags": "+qscale", "global_quality": "354"}


@dataclass(frozen=True, kw_only=True)
class Base:
    """How a file is made.

    name: what stands before the suffix. frames: how many pictures. times: of each picture in seconds; by default
    i / 25. sounds: the codec of each track; of two the first is silent and the second the default. late_s: when the
    first picture comes. first: its index. tags: of the file. size: width, height.
    """

    name: str
    suffix: str
    codec: str
    options: dict[str, str] = field(default_factory=dict)
    pix_fmt: str = "yuv420p"
    size: tuple[int, int] = (64, 48)
    frames: int = 50
    times: Callable[[int], Fraction] = lambda i: Fraction(i, FPS)
    sounds: Sequence[str] = ("aac",)
    format: str | None = None
    mux: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    context: dict[str, Any] = field(default_factory=dict)
    late_s: float = 0.0
    first: int = 0

    @property
    def kind(self) -> str:
        """Codec and container."""
        return f"{self.codec.removeprefix('lib')}.{self.suffix}"


def _variable(i: int) -> Fraction:
    return Fraction(int(np.cumsum([0] + [20, 40, 15, 250, 33, 33, 90, 300] * 10)[i]), 1000)


def _long_gap(i: int) -> Fraction:
    return Fraction(i, FPS) + (8 if i >= 25 else 0)


MP4_H264 = Base(name="b", suffix="mp4", codec="libx264", options=X264)
TS_H264 = Base(name="b", suffix="ts", codec="libx264", options=X264)
MKV_H264 = Base(name="b", suffix="mkv", codec="libx264", options=X264, sounds=("vorbis",))
WEBM_VP8 = Base(
    name="p",
    suffix="webm",
    codec="libvpx",
    options={"g": "12", "b": "400k", "deadline": "realtime", "cpu-used": "8"},
    sounds=("libopus",),
)
VP9 = {"g": "12", "b": "400k", "deadline": "realtime", "cpu-used": "8", "lag-in-frames": "0"}
AV1 = {"preset": "12", "svtav1-params": "keyint=12:lp=1", "crf": "25"}
X265 = {
    "preset": "ultrafast",
    "x265-params": "keyint=12:min-keyint=12:scenecut=0:bframes=2:log-level=none:pools=1:qp=18",
}
COMMON = (
    MP4_H264,
    Base(name="baseline", suffix="mp4", codec="libx264", options=BASELINE),
    Base(name="open", suffix="mp4", codec="libx264", options=OPEN),
    Base(name="fast", suffix="mp4", codec="libx264", options=X264, mux={"movflags": "+faststart"}),
    Base(name="fragments", suffix="mp4", codec="libx264", options=X264, mux={"movflags": "frag_keyframe+empty_moov"}),
    Base(name="b", suffix="mov", codec="libx264", options=X264, sounds=("pcm_s16le",)),
    MKV_H264,
    Base(name="b", suffix="avi", codec="libx264", options=X264, sounds=("libmp3lame",)),
    Base(name="baseline", suffix="avi", codec="libx264", options=BASELINE, sounds=("libmp3lame",)),
    Base(name="b", suffix="flv", codec="libx264", options=X264),
    TS_H264,
    Base(name="open", suffix="ts", codec="libx264", options=OPEN),
    Base(name="b", suffix="mpg", codec="libx264", options=X264, sounds=("mp2",), format="vob"),
    Base(name="b", suffix="3gp", codec="libx264", options=X264),
    Base(name="b", suffix="h264", codec="libx264", options=X264, sounds=()),
    Base(name="baseline", suffix="h264", codec="libx264", options=BASELINE, sounds=()),
    Base(name="b", suffix="mp4", codec="libx265", options=X265),
    Base(name="b", suffix="mkv", codec="libx265", options=X265),
    Base(name="b", suffix="ts", codec="libx265", options=X265),
    Base(name="b", suffix="hevc", codec="libx265", options=X265, sounds=()),
    Base(name="b", suffix="mp4", codec="mpeg4", options=PLAIN | {"bf": "2"}),
    Base(name="p", suffix="avi", codec="mpeg4", options=PLAIN, sounds=("libmp3lame",)),
    Base(name="b", suffix="avi", codec="mpeg4", options=PLAIN | {"bf": "2"}, sounds=("libmp3lame",)),
    Base(name="p", suffix="m4v", codec="mpeg4", options=PLAIN, sounds=()),
    Base(name="p", suffix="mkv", codec="mpeg4", options=PLAIN, sounds=("ac3",)),
    Base(name="b", suffix="ts", codec="mpeg2video", options=PLAIN | {"bf": "2"}, sounds=("mp2",)),
    Base(name="b", suffix="mpg", codec="mpeg2video", options=PLAIN | {"bf": "2"}, sounds=("mp2",), format="vob"),
    Base(name="b", suffix="vob", codec="mpeg2video", options=PLAIN | {"bf": "2"}, sounds=("ac3",), format="dvd"),
    Base(name="b", suffix="mxf", codec="mpeg2video", options=PLAIN | {"bf": "2"}, sounds=("pcm_s16le",)),
    Base(name="b", suffix="mpg", codec="mpeg1video", options=PLAIN | {"bf": "2"}, sounds=("mp2",), format="mpeg"),
    WEBM_VP8,
    Base(name="p", suffix="ogv", codec="libvpx", options=WEBM_VP8.options, sounds=("vorbis",), format="ogg"),
    Base(name="p", suffix="webm", codec="libvpx-vp9", options=VP9, sounds=("libopus",)),
    Base(name="p", suffix="mp4", codec="libvpx-vp9", options=VP9, sounds=("aac",)),
    Base(name="b", suffix="mp4", codec="libsvtav1", options=AV1, sounds=("aac",)),
    Base(name="b", suffix="webm", codec="libsvtav1", options=AV1, sounds=("libopus",)),
    Base(name="i", suffix="avi", codec="mjpeg", options=INTRA, pix_fmt="yuvj420p", sounds=("pcm_s16le",)),
    Base(name="i", suffix="mov", codec="mjpeg", options=INTRA, pix_fmt="yuvj420p", sounds=()),
    Base(name="p", suffix="wmv", codec="wmv2", options=PLAIN, sounds=("wmav2",), format="asf"),
    Base(name="p", suffix="asf", codec="msmpeg4", options=PLAIN, sounds=("wmav2",)),
    Base(name="p", suffix="flv", codec="flv", options=PLAIN, sounds=("libmp3lame",)),
    Base(name="p", suffix="3gp", codec="h263", options=PLAIN, size=(128, 96), sounds=()),
    Base(name="i", suffix="mov", codec="prores_ks", pix_fmt="yuv422p10le", sounds=("pcm_s16le",)),
    Base(name="p", suffix="mkv", codec="ffv1", options={"g": "12"}, sounds=("flac",)),
    Base(name="i", suffix="avi", codec="rawvideo", pix_fmt="bgr24", sounds=()),
    Base(
        name="i",
        suffix="mov",
        codec="dnxhd",
        options={"profile": "dnxhr_lb"},
        pix_fmt="yuv422p",
        size=(256, 128),
        sounds=(),
    ),
    Base(
        name="i",
        suffix="mxf",
        codec="dnxhd",
        options={"profile": "dnxhr_lb"},
        pix_fmt="yuv422p",
        size=(256, 128),
        sounds=(),
    ),
    Base(name="i", suffix="y4m", codec="wrapped_avframe", sounds=(), format="yuv4mpegpipe"),
)
"""What is damaged."""
TITLE = "K\udce4se \udcff"
ODD = (
    Base(
        name="ten-bit",
        suffix="mkv",
        codec="libx265",
        options=X265,
        pix_fmt="yuv420p10le",
        sounds=(),
        context={"color_primaries": 9, "color_trc": 16, "colorspace": 9},
    ),
    Base(name="yuv444", suffix="mp4", codec="libx264", options=X264, pix_fmt="yuv444p", sounds=()),
    Base(name="gray", suffix="mkv", codec="ffv1", pix_fmt="gray", sounds=()),
    Base(name="alpha", suffix="mov", codec="qtrle", pix_fmt="argb", sounds=()),
    Base(
        name="alpha-4444",
        suffix="mov",
        codec="prores_ks",
        options={"profile": "4444"},
        pix_fmt="yuva444p10le",
        sounds=(),
    ),
    Base(name="palette", suffix="gif", codec="gif", pix_fmt="rgb8", sounds=()),
    Base(
        name="interlaced",
        suffix="mp4",
        codec="libx264",
        options={**X264, "x264-params": "keyint=12:tff=1:bframes=2", "qp": "14"},
    ),
    Base(
        name="interlaced",
        suffix="mpg",
        codec="mpeg2video",
        options=PLAIN | {"flags": "+qscale+ildct+ilme"},
        sounds=("mp2",),
        format="vob",
    ),
    *(
        Base(name=f"{w}x{h}", suffix="mkv", codec="ffv1", pix_fmt="bgr0", size=(w, h), sounds=())
        for w, h in [(1, 1), (3, 5), (4096, 16)]
    ),
    *(
        Base(name=f"{w}x{h}", suffix="mp4", codec="libx264", options=X264, pix_fmt="yuv444p", size=(w, h), sounds=())
        for w, h in [(1, 1), (17, 33), (4096, 16)]
    ),
    *(
        Base(name=f"{w}x{h}", suffix="avi", codec="mjpeg", options=INTRA, pix_fmt="yuvj444p", size=(w, h), sounds=())
        for w, h in [(1, 1), (3, 5)]
    ),
    *(
        Base(name="one", suffix=b.suffix, codec=b.codec, options=b.options, frames=1, sounds=(), format=b.format)
        for b in (MP4_H264, MKV_H264, TS_H264, WEBM_VP8)
    ),
    Base(name="one", suffix="avi", codec="mpeg4", options=PLAIN, frames=1, sounds=()),
    Base(name="variable", suffix="mp4", codec="libx264", options=X264, times=_variable),
    Base(name="variable", suffix="mkv", codec="libx264", options=X264, times=_variable),
    Base(name="variable", suffix="webm", codec="libvpx", options=WEBM_VP8.options, times=_variable, sounds=()),
    Base(name="long-gap", suffix="mp4", codec="libx264", options=X264, times=_long_gap, sounds=()),
    Base(name="long-gap", suffix="mkv", codec="libx264", options=X264, times=_long_gap, sounds=()),
    *(Base(name="late", suffix=s, codec="libx264", options=X264, late_s=2) for s in ("mp4", "mkv", "ts", "flv", "mov")),
    *(
        Base(name="two-sounds", suffix=s, codec="libx264", options=X264, sounds=("aac", "aac"))
        for s in ("mp4", "mkv", "ts")
    ),
    Base(name="offset", suffix="ts", codec="libx264", options=X264, mux={"output_ts_offset": "100"}),
    Base(name="wraps", suffix="ts", codec="libx264", options=X264, mux={"output_ts_offset": "95442"}),
    Base(
        name="negative",
        suffix="mkv",
        codec="libx264",
        options=X264,
        mux={"output_ts_offset": "-1", "avoid_negative_ts": "disabled"},
        sounds=(),
    ),
    Base(name="offset", suffix="mkv", codec="libx264", options=X264, mux={"output_ts_offset": "5"}),
)
"""What is odd and whole."""


def picture(index: int, width: int, height: int) -> Image:
    """Return a picture that shows ``index``: 8 columns of bits above a texture that moves; of a small one, a colour."""
    if width < 16 or height < 16:
        colour = np.uint8([index * 5 % 256, index * 85 % 256, 255 - index * 5 % 256])
        return np.broadcast_to(colour, (height, width, 3)).copy()
    x, y = np.meshgrid(np.arange(width), np.arange(height))
    level = 128 + 60 * np.sin((x + 2 * index) / 5) + 50 * np.sin((y - index) / 3 + x / 9)
    scene = np.array([[0, 0, 0], [40, -20, 10], [-30, 30, 0], [0, -40, 40]])[index // 15 % 4]
    image = (level[..., None] + scene).clip(0, 255).astype(np.uint8)
    bits = np.uint8([index >> bit & 1 for bit in range(8)]) * 255
    image[: height // 2] = np.repeat(bits, -(-width // 8))[:width][None, :, None]
    return image


def sound(rate: int, seconds: float, silent: bool) -> NDArray[np.int16]:
    """Return a tone with a higher one in the first 50 ms of each second."""
    t = np.arange(round(rate * seconds)) / rate
    tone = 3000 * np.sin(2 * np.pi * 300 * t) + 20000 * np.sin(2 * np.pi * 900 * t) * (t % 1 < 0.05)
    return np.zeros(len(t), np.int16) if silent else tone.astype(np.int16)


def write(base: Base, folder: Path) -> Path:
    """Write the file of ``base``."""
    import av
    from av.stream import Disposition

    target = folder / f"{base.name}-{base.codec}-{base.first}-{base.frames}.{base.suffix}"
    width, height = base.size
    with ordinary(), av.open(str(target), "w", format=base.format, options=EXACT | base.mux) as container:
        container.metadata.update(base.tags)
        video = container.add_stream(base.codec, rate=FPS, options=base.options)
        video.width, video.height, video.pix_fmt = width, height, base.pix_fmt
        video.codec_context.thread_count = 1
        for name, value in base.context.items():
            setattr(video.codec_context, name, value)
        unit = Fraction(1, 1000 if base.times is _variable else FPS)
        video.codec_context.time_base = unit
        sounds = [_track(container, codec) for codec in base.sounds]
        if len(sounds) > 1:
            sounds[0].disposition, sounds[1].disposition = Disposition(0), Disposition.default
        length = float(base.times(base.frames - 1)) + 1 / FPS if base.frames else 0
        packets = []
        for i in range(base.frames):
            image = av.VideoFrame.from_ndarray(picture(base.first + i, width, height), format="rgb24")
            frame = image.reformat(format=base.pix_fmt)
            time = base.times(i) + Fraction(base.late_s)
            frame.pts, frame.time_base = round(time / unit), unit
            packets += video.encode(frame)
        packets += video.encode()
        for track in sounds:
            packets += _encoded(track, length + base.late_s, silent=track is sounds[0] and len(sounds) > 1)
        packets.sort(key=lambda p: p.dts * p.time_base if p.dts is not None else 0)
        container.start_encoding()
        for packet in packets:
            container.mux(packet)
    return target


def _track(container: Any, codec: str) -> Any:
    options = {"strict": "-2", "b": "64k"}
    rate = 48000 if codec in ("libopus", "mp2", "pcm_s16le") else 44100
    return container.add_stream(codec, rate=rate, layout="stereo", options=options)


def _encoded(track: Any, seconds: float, *, silent: bool) -> list[Any]:
    import av

    rate = track.codec_context.sample_rate
    samples = np.repeat(sound(rate, seconds, silent), 2)[None]
    packets = []
    for begin in range(0, samples.shape[1], 2048):
        frame = av.AudioFrame.from_ndarray(samples[:, begin : begin + 2048], format="s16", layout="stereo")
        frame.sample_rate, frame.pts, frame.time_base = rate, begin // 2, Fraction(1, rate)
        packets += track.encode(frame)
    return [*packets, *track.encode()]

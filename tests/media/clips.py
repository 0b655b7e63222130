"""Clips for tests: each frame has its index painted in, as 16 black or white columns."""

from collections.abc import Callable, Generator, Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stepline.media.process import Decoder, Limits

av = pytest.importorskip("av")

LIMITS = Limits(memory_mb=1000, least_s=120, s_per_video_s=4)


class _Alone(Decoder):
    """A decoder whose process ends with each piece of work."""

    def __call__(self, work: Callable[..., Iterator[Any]], *arguments: Any, duration_s: float) -> Generator[Any]:
        try:
            yield from super().__call__(work, *arguments, duration_s=duration_s)
        finally:
            self.close()


DECODER = _Alone(LIMITS)
WIDTH, HEIGHT = 320, 64
CFR_30 = [Fraction(i, 30) for i in range(120)]
CFR_25 = [Fraction(i, 25) for i in range(75)]
CFR_2997 = [Fraction(1001 * i, 30000) for i in range(90)]
VFR = [Fraction(int(t), 1000) for t in np.cumsum([0] + [20, 40, 15, 250, 33, 33, 90, 700] * 8)]
KINDS: dict[str, tuple[list[Fraction], dict[str, str]]] = {
    "30.mp4": (CFR_30, {}),
    "2997.mp4": (CFR_2997, {}),
    "variable.mp4": (VFR, {}),
    "cut.mp4": (CFR_30, {}),
    "offset.ts": (CFR_25, {"output_ts_offset": "100"}),
}
"""Constant 30 and 29.97, variable rate, an mp4 with an edit list, MPEG-TS with a start offset."""

Picture = Callable[[int], NDArray[np.uint8]]


def barcode(index: int) -> NDArray[np.uint8]:
    """Return a picture that shows ``index``."""
    bits = [(index >> bit) & 1 for bit in range(16)]
    return np.repeat(np.repeat(np.uint8(bits) * 255, WIDTH // 16)[None, :, None], HEIGHT, 0).repeat(3, 2)


def index_of(image: NDArray[np.uint8]) -> int:
    """Return the index that a decoded picture shows."""
    bits = image.reshape(HEIGHT, 16, WIDTH // 16, 3).mean(axis=(0, 2, 3)) > 127
    return sum(int(bit) << i for i, bit in enumerate(bits))


def make(
    path: Path,
    times: Sequence[Fraction],
    *,
    picture: Picture = barcode,
    audio: NDArray[np.int16] | None = None,
    options: dict[str, str] | None = None,
) -> Path:
    """Write an H.264 clip with B-frames whose i-th frame stands at ``times[i]``; audio is 16 kHz mono."""
    with av.open(str(path), "w", options=options or {}) as container:
        height, width, _ = picture(0).shape
        video = container.add_stream("libx264", rate=30, options={"preset": "veryfast", "bf": "2", "g": "12"})
        video.width, video.height, video.pix_fmt = width, height, "yuv420p"
        video.codec_context.time_base = Fraction(1, 90000)
        sound = None
        if audio is not None:
            sound = container.add_stream("aac", rate=16000, layout="mono")
        for i, time in enumerate(times):
            frame = av.VideoFrame.from_ndarray(picture(i), format="rgb24")
            frame.pts, frame.time_base = round(time * 90000), Fraction(1, 90000)
            container.mux(video.encode(frame))
        container.mux(video.encode())
        if sound is not None and audio is not None:
            samples = av.AudioFrame.from_ndarray(audio[None], format="s16", layout="mono")
            samples.sample_rate, samples.pts, samples.time_base = (
                16000,
                0,
                Fraction(1, 16000),
            )
            container.mux(sound.encode(samples))
            container.mux(sound.encode())
    return path


def kind(folder: Path, name: str) -> tuple[Path, list[int], list[Fraction]]:
    """Return a clip of one of the KINDS, the index that each of its frames shows, and their times."""
    times, options = KINDS[name]
    path = make(folder / name, times, options=options)
    if name != "cut.mp4":
        return path, list(range(len(times))), times
    return copy_from(path, folder / "edited.mp4", 1.1), list(range(33, 120)), times[:87]


def without_audio_between(source: Path, target: Path, start_s: float, end_s: float) -> Path:
    """Copy all packets but those of the audio in [start_s, end_s)."""
    with av.open(str(source)) as before, av.open(str(target), "w") as after:
        copied = {stream.index: after.add_stream_from_template(stream) for stream in before.streams}
        for packet in before.demux():
            lost = packet.stream.type == "audio" and packet.dts and start_s <= packet.dts * packet.time_base < end_s
            if packet.dts is not None and not lost:
                packet.stream = copied[packet.stream_index]
                after.mux(packet)
    return target


def turned(source: Path, target: Path, degrees: float, *, hflip: bool = False) -> Path:
    """Copy the packets of the video with a display matrix."""
    with av.open(str(source)) as before, av.open(str(target), "w") as after:
        copied = after.add_stream_from_template(before.streams.video[0])
        copied.set_display_rotation(degrees, hflip=hflip)
        for packet in before.demux(video=0):
            if packet.size:
                packet.stream = copied
                after.mux(packet)
    return target


def copy_from(source: Path, target: Path, start_s: float) -> Path:
    """Copy the packets from the last key frame before ``start_s`` on, with ``start_s`` as time 0: an edit list."""
    with av.open(str(source)) as before, av.open(str(target), "w") as after:
        stream = before.streams.video[0]
        copied = after.add_stream_from_template(stream)
        offset = round(start_s / stream.time_base)
        before.seek(offset, stream=stream)
        for packet in before.demux(stream):
            if packet.dts is not None:
                packet.pts -= offset
                packet.dts -= offset
                packet.stream = copied
                after.mux(packet)
    return target

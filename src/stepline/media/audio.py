"""A video's audio as 16 kHz mono."""

import wave
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from stepline.media.decode import MediaError, fraction, opened, packets, sound
from stepline.media.spans import Spans

if TYPE_CHECKING:
    import av

RATE = 16_000
PIECES = 64
"""Frames of audio that are resampled before the output is read."""
NONE = "no audio could be decoded"
AHEAD_S = 1.0
"""How long before a span the decoding of its audio starts, so that decoder and filter have settled."""


class Resampler:
    """Converts frames such as ``like`` to continuous 16 kHz mono audio of 16 bit.

    first: the position of the first output sample, in samples of the frames. Audio before it is cut. If times jump by
        more than 0.1 s, gaps are filled with silence and overlaps are cut (ffmpeg's aresample=async=1).
    """

    def __init__(self, like: "av.AudioFrame", first: int) -> None:
        """Create the filters."""
        import av

        self._pushed = 0
        self._graph = av.filter.Graph()  # its filters do not keep it alive
        self._source = self._graph.add_abuffer(
            sample_rate=like.sample_rate, format=like.format, layout=like.layout, time_base=like.time_base
        )
        resample = self._graph.add("aresample", f"{RATE}:async=1:first_pts={first}")
        convert = self._graph.add("aformat", f"sample_fmts=s16:sample_rates={RATE}:channel_layouts=mono")
        self._sink = self._graph.add("abuffersink")
        self._graph.link_nodes(self._source, resample, convert, self._sink).configure()

    def __call__(self, frame: "av.AudioFrame | None") -> Iterator[NDArray[np.int16]]:
        """Yield the samples that a frame produces, delayed by some frames; None ends the stream."""
        import av

        self._source.push(frame)
        self._pushed += 1
        while frame is None or self._pushed % PIECES == 0:
            try:
                out = self._sink.pull()
            except (av.BlockingIOError, av.EOFError):
                return
            yield cast("av.AudioFrame", out).to_ndarray()[0]


@dataclass(frozen=True)
class Audio:
    """The result of decoding a video's audio. there: whether there is any. reason: why it is incomplete, or ""."""

    there: bool
    reason: str = ""


class Sound:
    """The decoder of an audio stream. Packets that cannot be decoded are left out and counted.

    start_s: the time on the stream's clock that becomes time 0. reason: describes the lost audio, or "".
    """

    def __init__(self, stream: "av.AudioStream", start_s: Fraction) -> None:
        """Prepare the decoder; nothing is decoded yet."""
        self._start_s = start_s
        self._last: av.AudioFrame | None = None
        self._lost = 0
        self._first = "the audio's codec is unknown" if stream.codec_context is None else ""
        self._known = stream.codec_context is not None

    @property
    def reason(self) -> str:
        """Why the decoded audio is incomplete, or ""."""
        return f"{self._lost} packets of audio {self._first}" if self._lost else self._first

    def decode(self, packet: "av.Packet[av.AudioStream]") -> Iterator["av.AudioFrame"]:
        """Yield the frames of a packet, with times relative to time 0; the empty packet ends the stream."""
        import av

        if not self._known:
            return
        try:
            frames = packet.decode()
        except av.FFmpegError as error:
            if isinstance(error, MemoryError):
                raise
            self._lost += 1
            at = f"{float(self._end_s()):.3f} s"
            self._first = self._first or f"cannot be decoded, the first after {at}: {error.strerror}"
            return
        for frame in frames:
            if frame.pts is None:
                frame.pts = round(self._end_s() / fraction(frame.time_base))
            elif self._start_s:
                frame.pts -= round(self._start_s / fraction(frame.time_base))
            self._last = frame
            yield frame

    def _end_s(self) -> Fraction:
        """Return the end of the last frame in seconds."""
        if self._last is None:
            return Fraction(0)
        length_s = Fraction(self._last.samples, self._last.sample_rate)
        return (self._last.pts or 0) * fraction(self._last.time_base) + length_s


class AudioFile:
    """The audio stream of a container as a file: 16 kHz, mono, 16 bit, aligned with the video frames.

    start_s: the time on the stream's clock that becomes sample 0, so that t seconds are sample 16000 t. Packets that
    cannot be decoded are replaced by silence.
    """

    def __init__(self, stream: "av.AudioStream", wav: Path, *, start_s: Fraction) -> None:
        """Open ``wav`` for the packets of ``stream``."""
        self._file = created(wav)
        self._sound = Sound(stream, start_s)
        self._resample: Resampler | None = None
        self._form: tuple[object, ...] = ()

    def add(self, packet: "av.Packet[av.AudioStream]") -> None:
        """Write the audio of a packet; the empty packet ends the stream."""
        for frame in self._sound.decode(packet):
            form = frame.sample_rate, frame.format.name, frame.layout.name
            if form != self._form:
                self._write(None)
                self._resample = Resampler(frame, self._file.tell() * frame.sample_rate // RATE)
                self._form = form
            self._write(frame)
        if packet.size == 0:
            self._write(None)

    def close(self) -> Audio:
        """Close the file and return the result."""
        there = self._file.tell() > 0
        self._file.close()
        return Audio(there, self._sound.reason or ("" if there else NONE))

    def _write(self, frame: "av.AudioFrame | None") -> None:
        for samples in self._resample(frame) if self._resample else ():
            self._file.writeframesraw(samples.tobytes())


def write_spans(path: Path, wav: Path, spans: Spans, *, start_s: Fraction) -> Audio:
    """Write the audio of ``spans`` to ``wav`` as ``AudioFile`` does, at its original times, with silence in between."""
    file = created(wav)
    reasons: list[str] = []
    try:
        for begin_s, end_s in spans:
            first, last = round(begin_s * RATE), round(end_s * RATE)
            for at, samples in _samples_from(path, begin_s - AHEAD_S, start_s, reasons):
                begin, end = max(first, at, file.tell()), min(last, at + len(samples))
                if begin < end:
                    file.writeframesraw(bytes(2 * (begin - file.tell())))
                    file.writeframesraw(samples[begin - at : end - at].tobytes())
                if at + len(samples) >= last:
                    break
    except MediaError as error:
        reasons.append(str(error))
    finally:
        there = file.tell() > 0
        file.close()
    return Audio(there, next(filter(None, reasons), "" if there else NONE))


def _samples_from(
    path: Path, time_s: float, start_s: Fraction, reasons: list[str]
) -> Iterator[tuple[int, NDArray[np.int16]]]:
    """Yield pieces of 16 kHz audio from ``time_s`` or earlier on, each with the index of its first sample."""
    with opened(path) as container:
        stream = sound(container)
        assert stream is not None
        decoder = Sound(stream, start_s)
        target = round((Fraction(time_s) + start_s) / fraction(stream.time_base))
        if time_s > 0:
            container.seek(target, stream=stream)
        demuxed = packets(container, stream)
        packet = next(demuxed)
        if time_s > 0 and (packet.pts is None or packet.pts > target):
            yield from _samples_from(path, 0, start_s, reasons)
            return
        resample, at = None, 0
        try:
            for frame in chain((f for each in chain([packet], demuxed) for f in decoder.decode(each)), [None]):
                if frame is not None and resample is None:
                    rate = frame.sample_rate
                    grid = rate // gcd(rate, RATE)
                    began = int((frame.pts or 0) * fraction(frame.time_base) * rate)
                    first = began // grid * grid if time_s > 0 else 0
                    resample, at = Resampler(frame, first), first * RATE // rate
                for samples in resample(frame) if resample else ():
                    yield at, samples
                    at += len(samples)
        finally:
            reasons.append(decoder.reason)


def created(wav: Path) -> wave.Wave_write:
    """Return a new 16 kHz, 16-bit mono file."""
    file = wave.open(str(wav), "wb")  # noqa: SIM115 - the caller closes it
    file.setparams((1, 2, RATE, 0, "NONE", ""))
    return file

"""A video's audio as 16 kHz mono."""

import wave
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from stepline.io import atomic_path
from stepline.media.decode import DamagedError, MediaError, fraction, opened, packets, sound
from stepline.media.spans import Spans
from stepline.media.wav import LOUD, QUIET

if TYPE_CHECKING:
    import av

RATE = 16_000
PIECES = 64
"""Frames of audio that are resampled before the output is read."""
NONE = "no audio could be decoded"
AHEAD_S = 1.0
"""How long before a span the decoding of its audio starts, so that decoder and filter have settled."""
LOUDER = 10
"""How many times longer another track or channel must be loud to be used instead."""


class Source(NamedTuple):
    """Where the audio of a file comes from, counted from 1.

    track: None means the default track, or the first if none is flagged. channel: None means the mix of all channels.
    """

    track: int | None
    channel: int | None = None


class Resampler:
    """Converts frames such as ``like`` to continuous 16 kHz mono audio of 16 bit.

    first: the position of the first output sample, in samples of the frames. Audio before it is cut. If times jump by
        more than 0.1 s, gaps are filled with silence and overlaps are cut (ffmpeg's aresample=async=1).
    channel: the channel that is used, counted from 1, instead of the mix of all.
    """

    def __init__(self, like: "av.AudioFrame", first: int, channel: int | None) -> None:
        """Create the filters."""
        import av

        self._pushed = 0
        self._graph = av.filter.Graph()  # its filters do not keep it alive
        self._source = self._graph.add_abuffer(
            sample_rate=like.sample_rate, format=like.format, layout=like.layout, time_base=like.time_base
        )
        resample = self._graph.add("aresample", f"{RATE}:async=1:first_pts={first}")
        convert = self._graph.add("aformat", f"sample_fmts=s16:sample_rates={RATE}:channel_layouts=mono")
        alone = [self._graph.add("pan", f"mono|c0=c{channel - 1}")] if channel else []
        self._sink = self._graph.add("abuffersink")
        self._graph.link_nodes(self._source, *alone, resample, convert, self._sink).configure()

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
    """The result of decoding a video's audio.

    there: whether there is any. reason: why it is incomplete, or "". loud_s: for how many seconds it is loud. quiet:
    whether this is less than the share ``QUIET``, or there is no audio.
    """

    there: bool
    reason: str = ""
    loud_s: float = 0.0
    quiet: bool = True


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

    Packets that cannot be decoded are replaced by silence.
    """

    def __init__(self, stream: "av.AudioStream", file: "WavFile", start_s: Fraction, channel: int | None) -> None:
        """Prepare the decoder. start_s and channel: as for ``audio_file``."""
        self._file = file
        self._sound = Sound(stream, start_s)
        self._channel = channel
        self._resample: Resampler | None = None
        self._form: tuple[object, ...] = ()

    def add(self, packet: "av.Packet[av.AudioStream]", part: int = 0) -> None:
        """Write the audio of a packet; the empty packet ends the stream. part: of joined recordings, which it is of."""
        for frame in self._sound.decode(packet):
            form = frame.sample_rate, frame.format.name, frame.layout.name, part
            if form != self._form:
                self._write(None)
                first = self._file.n_samples * frame.sample_rate // RATE
                channel = self._channel if self._channel and self._channel <= frame.layout.nb_channels else None
                self._resample = Resampler(frame, first, channel)
                self._form = form
            self._write(frame)
        if packet.size == 0:
            self._write(None)

    def result(self) -> Audio:
        """Return the result, after the last packet."""
        return self._file.result(self._sound.reason)

    def _write(self, frame: "av.AudioFrame | None") -> None:
        for samples in self._resample(frame) if self._resample else ():
            self._file.write(samples)


@contextmanager
def audio_file(
    stream: "av.AudioStream", wav: Path, *, start_s: Fraction, channel: int | None = None, spans: Spans = ()
) -> Iterator[AudioFile]:
    """Yield the writer of ``wav`` for the packets of ``stream``; the file appears when the block ends without an error.

    start_s: the time on the stream's clock that becomes sample 0, so that t seconds are sample 16000 t. channel: the
    channel that is used, counted from 1, instead of the mix of all. spans: if given, the audio between them is silent,
    and ends with the last.
    """
    with _created(wav, spans) as file:
        yield AudioFile(stream, file, start_s, channel)


def write_spans(path: Path, wav: Path, spans: Spans, *, start_s: Fraction, source: Source) -> Audio:
    """Write the audio of ``spans`` to ``wav`` as ``AudioFile`` does, at its original times, with silence in between."""
    reasons: list[str] = []
    with _created(wav) as file:
        try:
            for begin_s, end_s in spans:
                first, last = round(begin_s * RATE), round(end_s * RATE)
                for at, samples in _samples_from(path, begin_s - AHEAD_S, start_s, source, reasons):
                    begin, end = max(first, at, file.n_samples), min(last, at + len(samples))
                    if begin < end:
                        file.write(np.zeros(begin - file.n_samples, np.int16))
                        file.write(samples[begin - at : end - at])
                    if at + len(samples) >= last:
                        break
        except MediaError as error:
            reasons.append(str(error))
        return file.result(next(filter(None, reasons), ""))


def _samples_from(
    path: Path, time_s: float, start_s: Fraction, source: Source, reasons: list[str]
) -> Iterator[tuple[int, NDArray[np.int16]]]:
    """Yield pieces of 16 kHz audio from ``time_s`` or earlier on, each with the index of its first sample."""
    with opened(path) as container:
        stream = sound(container, source.track)
        assert stream is not None
        decoder = Sound(stream, start_s)
        target = round((Fraction(time_s) + start_s) / fraction(stream.time_base))
        if time_s > 0:
            container.seek(target, stream=stream)
        demuxed = packets(container, stream)
        packet = next(demuxed)
        if time_s > 0 and (packet.pts is None or packet.pts > target):
            yield from _samples_from(path, 0, start_s, source, reasons)
            return
        resample, at = None, 0
        try:
            for frame in chain((f for each in chain([packet], demuxed) for f in decoder.decode(each)), [None]):
                if frame is not None and resample is None:
                    rate = frame.sample_rate
                    grid = rate // gcd(rate, RATE)
                    began = int((frame.pts or 0) * fraction(frame.time_base) * rate)
                    first = began // grid * grid if time_s > 0 else 0
                    resample, at = Resampler(frame, first, source.channel), first * RATE // rate
                for samples in resample(frame) if resample else ():
                    yield at, samples
                    at += len(samples)
        finally:
            reasons.append(decoder.reason)


class WavFile:
    """A 16 kHz, 16-bit mono file. n_samples: how many have been written."""

    def __init__(self, file: wave.Wave_write, spans: Spans) -> None:
        """Begin an empty file. spans: as for ``audio_file``."""
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        self._file = file
        self._spans = [(round(start_s * RATE), round(end_s * RATE)) for start_s, end_s in spans]
        self._loud = self.n_samples = 0

    def write(self, samples: NDArray[np.int16]) -> None:
        """Append samples."""
        if self._spans:
            at, whole = self.n_samples, samples
            samples = np.zeros_like(whole[: max(0, self._spans[-1][1] - at)])
            for start, end in self._spans:
                within = slice(max(0, start - at), max(0, end - at))
                samples[within] = whole[within][: len(samples[within])]
        self._file.writeframesraw(samples.tobytes())
        self.n_samples += len(samples)
        self._loud += _loud(samples)

    def result(self, reason: str) -> Audio:
        """Return the result. reason: why the audio is incomplete, or ""."""
        there = self.n_samples > 0
        quiet = self._loud < QUIET * self.n_samples or not there
        return Audio(there, reason or ("" if there else NONE), round(self._loud / RATE, 3), quiet)


@contextmanager
def _created(wav: Path, spans: Spans = ()) -> Iterator[WavFile]:
    """Yield a new file, which becomes ``wav`` when the block ends without an error. spans: as for ``audio_file``."""
    with atomic_path(wav) as part, wave.open(str(part), "wb") as file:
        yield WavFile(file, spans)


def _loud(samples: NDArray[np.int16]) -> int:
    return int(np.count_nonzero(np.abs(samples.astype(np.int32)) > LOUD * (1 << 15)))


def louder(path: Path, loud_s: float) -> Source | None:
    """Return the other track of ``path`` that is loud for the longest time, if that is ``LOUDER`` times ``loud_s``.

    If there is none, return such a channel of any track, or None. Of equal ones, the first is returned. loud_s: for how
    long the mix of the default track is loud.
    """
    of_mix: dict[Source, Fraction] = {}
    of_one: dict[Source, Fraction] = {}
    with opened(path) as container, suppress(DamagedError):  # what can be read decides
        streams, default = container.streams.audio, sound(container)
        tracks = {stream.index: (track, Sound(stream, Fraction(0))) for track, stream in enumerate(streams, 1)}
        for packet in packets(container, *streams):
            track, decoder = tracks[packet.stream.index]
            for frame in decoder.decode(packet):
                samples = _planes(frame)
                each = {Source(track, n): one for n, one in enumerate(samples, 1)}
                mix = {} if packet.stream is default else {Source(track): samples.mean(axis=0)}
                for heard, of in ((mix, of_mix), (each, of_one)):
                    for source, one in heard.items():
                        n_loud = int(np.count_nonzero(np.abs(one) > LOUD))
                        of[source] = of.get(source, Fraction(0)) + Fraction(n_loud, frame.sample_rate)
    for of in (of_mix, of_one):
        best = max(of, key=lambda source: of[source], default=None)
        if best is not None and of[best] and of[best] >= LOUDER * loud_s:
            return best
    return None


def _planes(frame: "av.AudioFrame") -> NDArray[np.float32]:
    """Return the samples of each channel between -1 and 1, with shape (channels, samples)."""
    values = frame.to_ndarray()
    if not frame.format.is_planar:
        values = values.reshape(-1, frame.layout.nb_channels).T
    if values.dtype.kind == "f":
        return values.astype(np.float32)
    full = np.float32(1 << 8 * values.itemsize - 1)
    return values.astype(np.float32) / full - (values.dtype.kind == "u")

"""A video's audio as 16 kHz mono."""

import wave
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from stepline.media.decode import MediaError, fraction, opened
from stepline.media.spans import Spans

if TYPE_CHECKING:
    import av

RATE = 16_000
PIECES = 64
"""Pieces of audio that are resampled before what came out is written."""
AHEAD_S = 1.0
"""How long before a span its audio is decoded from, so that decoder and filter have settled."""


class Resampler:
    """Makes frames such as ``like`` 16 kHz, mono, 16 bit and continuous.

    first: where its first sample stands, in samples of the frames. Audio before that is cut; where times jump by more
        than 0.1 s, silence fills the gap or what overlaps is cut (ffmpeg's aresample=async=1).
    """

    def __init__(self, like: "av.AudioFrame", first: int) -> None:
        """Make the filters."""
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
        """Yield the samples that come out for a frame, some frames later; None ends the stream."""
        import av

        self._source.push(frame)
        self._pushed += 1
        while frame is None or self._pushed % PIECES == 0:
            try:
                out = self._sink.pull()
            except (av.BlockingIOError, av.EOFError):
                return
            yield cast("av.AudioFrame", out).to_ndarray()[0]


class AudioFile:
    """The first audio stream of a container as a file: 16 kHz, mono, 16 bit, aligned with the pictures.

    start_s: the time on the container's clock that becomes sample 0, so that t seconds are sample 16000 t.
    """

    def __init__(self, stream: "av.AudioStream", wav: Path, *, start_s: Fraction) -> None:
        """Open ``wav`` for the packets of ``stream``."""
        self.reason = ""
        self._file = created(wav)
        self._start_s = start_s
        self._resample: Resampler | None = None
        if stream.codec_context is None:
            self.reason = "the audio's codec is unknown"

    def add(self, packet: "av.Packet[av.AudioStream]") -> None:
        """Write what comes out for a packet; the empty packet ends the stream. After a failure do nothing."""
        import av

        if self.reason:
            return
        try:
            for frame in packet.decode():
                _place(frame, self._start_s)
                self._resample = self._resample or Resampler(frame, 0)
                self._write(frame)
            if packet.size == 0:
                self._write(None)
        except MediaError as error:
            self.reason = str(error)
        except av.FFmpegError as error:
            if isinstance(error, MemoryError):
                raise
            self.reason = f"cannot be decoded: {error.strerror}"

    def close(self) -> str:
        """Close the file and return why it does not hold the whole audio, "" where it does."""
        if not self.reason and not self._file.tell():
            self.reason = "no audio could be decoded"
        self._file.close()
        return self.reason

    def _write(self, frame: "av.AudioFrame | None") -> None:
        for samples in self._resample(frame) if self._resample else ():
            self._file.writeframesraw(samples.tobytes())


def write_spans(path: Path, wav: Path, spans: Spans, *, start_s: Fraction) -> str:
    """Write the audio of ``spans`` to ``wav`` as ``AudioFile`` does, each at its place and with silence between them.

    Returns why that is not all of it, or "".
    """
    file = created(wav)
    try:
        for begin_s, end_s in spans:
            first, last = round(begin_s * RATE), round(end_s * RATE)
            for at, samples in _samples_from(path, begin_s - AHEAD_S, start_s):
                begin, end = max(first, at, file.tell()), min(last, at + len(samples))
                if begin < end:
                    file.writeframesraw(bytes(2 * (begin - file.tell())))
                    file.writeframesraw(samples[begin - at : end - at].tobytes())
                if at + len(samples) >= last:
                    break
        return "" if file.tell() else "no audio could be decoded"
    except MediaError as error:
        return str(error)
    finally:
        file.close()


def _samples_from(path: Path, time_s: float, start_s: Fraction) -> Iterator[tuple[int, NDArray[np.int16]]]:
    """Yield pieces of 16 kHz audio, each with the index of its first sample, from ``time_s`` or earlier on."""
    with opened(path) as container:
        stream = container.streams.audio[0]
        if stream.codec_context is None:
            raise MediaError("the audio's codec is unknown")
        target = round((Fraction(time_s) + start_s) / fraction(stream.time_base))
        if time_s > 0:
            container.seek(target, stream=stream)
        packets = container.demux(stream)
        packet = next(packets)
        if time_s > 0 and (packet.pts is None or packet.pts > target):
            yield from _samples_from(path, 0, start_s)
            return
        resample, at = None, 0
        for frame in chain((frame for packet in chain([packet], packets) for frame in packet.decode()), [None]):
            if frame is not None:
                pts = _place(frame, start_s)
                if resample is None:
                    rate = frame.sample_rate
                    grid = rate // gcd(rate, RATE)
                    first = int(pts * fraction(frame.time_base) * rate) // grid * grid if time_s > 0 else 0
                    resample, at = Resampler(frame, first), first * RATE // rate
            for samples in resample(frame) if resample else ():
                yield at, samples
                at += len(samples)


def created(wav: Path) -> wave.Wave_write:
    """Return a new 16 kHz mono file of 16 bit."""
    file = wave.open(str(wav), "wb")  # noqa: SIM115 - its user closes it
    file.setparams((1, 2, RATE, 0, "NONE", ""))
    return file


def _place(frame: "av.AudioFrame", start_s: Fraction) -> int:
    """Let the frame's time count from ``start_s``, and return it in units of its time base."""
    if frame.pts is None:
        raise MediaError("a piece of audio has no presentation time")
    frame.pts -= round(start_s / fraction(frame.time_base))
    return frame.pts

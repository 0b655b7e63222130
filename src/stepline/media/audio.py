"""A video's audio as 16 kHz mono."""

import wave
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast

from stepline.media.decode import fraction

if TYPE_CHECKING:
    import av

RATE = 16_000


class AudioFile:
    """The first audio stream of a container as a file: 16 kHz, mono, 16 bit, aligned with the pictures.

    start_s: the time on the container's clock that becomes sample 0, so that t seconds are sample 16000 t. Audio before
        it is cut; where times jump by more than 0.1 s, silence fills the gap or what overlaps is cut (ffmpeg's
        aresample=async=1:first_pts=0).
    """

    def __init__(self, stream: "av.AudioStream", wav: Path, *, start_s: Fraction) -> None:
        """Open ``wav`` for the packets of ``stream``."""
        import av

        self.reason = ""
        self._file = wave.open(str(wav), "wb")  # noqa: SIM115 - it lives as long as this
        self._file.setparams((1, 2, RATE, 0, "NONE", ""))
        self._start_s = start_s
        if stream.codec_context is None:
            self.reason = "the audio's codec is unknown"
            return
        self._graph = av.filter.Graph()  # its filters do not keep it alive
        self._source = self._graph.add_abuffer(template=stream)
        resample = self._graph.add("aresample", f"{RATE}:async=1:first_pts=0")
        convert = self._graph.add("aformat", f"sample_fmts=s16:sample_rates={RATE}:channel_layouts=mono")
        self._sink = self._graph.add("abuffersink")
        self._graph.link_nodes(self._source, resample, convert, self._sink).configure()

    def add(self, packet: "av.Packet[av.AudioStream]") -> None:
        """Write what comes out for a packet; the empty packet ends the stream. After a failure do nothing."""
        import av

        if self.reason:
            return
        try:
            for frame in packet.decode():
                if frame.pts is None:
                    self.reason = "a piece of audio has no presentation time"
                    return
                frame.pts -= round(self._start_s / fraction(frame.time_base))
                self._source.push(frame)
                self._drain()
            if packet.size == 0:
                self._source.push(None)
                self._drain()
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

    def _drain(self) -> None:
        import av

        while True:
            try:
                frame = self._sink.pull()
            except (av.BlockingIOError, av.EOFError):
                return
            self._file.writeframesraw(cast("av.AudioFrame", frame).to_ndarray().tobytes())

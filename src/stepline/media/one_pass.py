"""The one pass over a video: its packets are read once, every frame is scored and the audio cut out."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.media.audio import AudioFile, write_spans
from stepline.media.cut import read_header
from stepline.media.decode import DecodedFrame, MediaError, Probe, Stream, opened
from stepline.media.scores import FrameScores
from stepline.media.spans import Spans, shown

if TYPE_CHECKING:
    import av

ROWS = 1 << 14
"""Frames whose scores are held in memory before they are written."""
NO_AUDIO = "no audio stream"


def one_pass(path: Path, folder: Path, spans: Spans = ()) -> Iterator[dict[str, Any]]:
    """Write ``scores.parquet`` and ``audio.wav`` of ``path`` into ``folder``; then yield, once, what was found.

    ``scores.parquet`` has a line per frame: frame, pts (in units of the metadata's ``time_base``), t_s, first (whether
    it is compared with none before it), and ``FrameScores.COLUMNS``. Without readable audio there is no ``audio.wav``.
    With ``spans`` only the frames that are shown within them are decoded and scored, counted without gaps; between
    spans the audio is silent.
    Raises MediaError where a frame cannot be decoded, or none is shown within the spans.
    """
    import cv2

    cv2.setNumThreads(1)
    wav = folder / "audio.wav"
    scores = ScoresFile(folder / "scores.parquet")
    header, reason = _of_spans(path, wav, scores, spans) if spans else _of_all(path, wav, scores)
    if reason:
        wav.unlink(missing_ok=True)
    status = "missing" if not header.has_audio else "failed" if reason else "present"
    yield {
        "codec": header.codec,
        "width": header.width,
        "height": header.height,
        "fps": header.fps,
        "duration_s": round(scores.close(), 6),
        "n_frames": scores.n_frames,
        "audio": {"status": status, "reason": reason},
    }


def _of_all(path: Path, wav: Path, scores: "ScoresFile") -> tuple[Probe, str]:
    """Read the whole video, and return its header and why there is not all of its audio, or ""."""
    with opened(path) as container:
        stream = Stream(container)
        sounds = container.streams.audio[:1]
        sound = AudioFile(sounds[0], wav, start_s=stream.start * stream.time_base) if sounds else None
        packets: Iterator[av.Packet[Any]] = container.demux(stream.video, *sounds)
        for packet in packets:
            if packet.stream is not stream.video and sound is not None:
                sound.add(packet)
                continue
            for frame in stream.decode(packet):
                scores.add(frame, first=not scores.n_frames)
        return stream.probe(), sound.close() if sound is not None else NO_AUDIO


def _of_spans(path: Path, wav: Path, scores: "ScoresFile", spans: Spans) -> tuple[Probe, str]:
    """Read the spans of a video, and return its header and why there is not all of their audio, or ""."""
    header, frame_rate, _ = read_header(path)
    for frame, first in shown(path, spans):
        scores.add(replace(frame, frame_rate=frame_rate), first=first)
    if not scores.n_frames:
        raise MediaError("no frame is shown within its spans")
    return header, write_spans(path, wav, spans, start_s=header.start_s) if header.has_audio else NO_AUDIO


class ScoresFile:
    """The scores of a video's frames as Parquet, written while they come."""

    def __init__(self, path: Path) -> None:
        """Take ``path`` for at least one frame."""
        import pyarrow as pa

        self.n_frames = 0
        self._path = path
        types = {"frame": pa.int64(), "pts": pa.int64(), "t_s": pa.float64(), "first": pa.bool_()}
        self._schema = pa.schema(types | dict.fromkeys(FrameScores.COLUMNS, pa.float64()))
        self._rows: list[tuple[float, ...]] = []

    def add(self, frame: DecodedFrame, *, first: bool) -> None:
        """Score the next frame; ``first``: without one before it."""
        import pyarrow.parquet as pq

        if not self.n_frames:
            clock = {"time_base": str(frame.time_base), "frame_rate": str(frame.frame_rate)}
            self._schema = self._schema.with_metadata(clock)
            self._writer = pq.ParquetWriter(self._path, self._schema)
        if first:
            self._scores = FrameScores()
        self._rows.append((self.n_frames, frame.pts, frame.t_s, first, *self._scores(frame.bgr())))
        self._end_s = frame.end_s
        self.n_frames += 1
        if len(self._rows) == ROWS:
            self._write()

    def close(self) -> float:
        """Write the rest and return when the last frame is no longer shown, in seconds."""
        self._write()
        self._writer.close()
        return self._end_s

    def _write(self) -> None:
        import pyarrow as pa

        columns = zip(*self._rows, strict=True)
        if self._rows:
            self._writer.write_table(pa.table(dict(zip(self._schema.names, columns, strict=True)), self._schema))
            self._rows = []

"""The one pass over a video: its packets are read once, every frame is scored and the audio cut out."""

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.media.audio import AudioFile, write_spans
from stepline.media.cut import read_header
from stepline.media.decode import DecodedFrame, MediaError, Probe, Stream, opened
from stepline.media.process import Limits, killable
from stepline.media.scores import FrameScores
from stepline.media.spans import Spans, shown
from stepline.seal import KEY, OPEN, seal

if TYPE_CHECKING:
    import av

ROWS = 1 << 12
"""Frames whose scores are held in memory before they are handed on."""
NO_AUDIO = "no audio stream"


@dataclass(frozen=True)
class Scored:
    """Some frames in a row: pts (in units of ``time_base``), t_s, first, and ``FrameScores.COLUMNS`` of each."""

    time_base: Fraction
    frame_rate: Fraction
    rows: list[tuple[float, ...]]


def one_pass(path: Path, folder: Path, spans: Spans = (), *, limits: Limits, duration_s: float) -> dict[str, Any]:
    """Write ``scores.parquet`` and ``audio.wav`` of ``path`` into ``folder`` and return what was found.

    ``scores.parquet`` has a line per frame: frame, pts (in units of the metadata's ``time_base``), t_s, first (whether
    it is compared with none before it), and ``FrameScores.COLUMNS``. Without readable audio there is no ``audio.wav``.
    With ``spans`` only the frames that are shown within them are decoded and scored, counted without gaps; between
    spans the audio is silent.
    duration_s: the video's length, for the limit of time. Raises MediaError where a frame cannot be decoded within the
    limits, or none is shown within the spans.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"frame": pa.int64(), "pts": pa.int64(), "t_s": pa.float64(), "first": pa.bool_()}
    types |= dict.fromkeys(FrameScores.COLUMNS, pa.float64())
    writer, n_frames, found = None, 0, dict[str, Any]()
    try:
        for item in killable(decode, path, folder / "audio.wav", spans, limits=limits, duration_s=duration_s):
            if isinstance(item, Scored):
                clock = {"time_base": str(item.time_base), "frame_rate": str(item.frame_rate)}
                schema = pa.schema(types, clock)
                writer = writer or pq.ParquetWriter(folder / "scores.parquet", schema)
                columns = range(n_frames, n_frames + len(item.rows)), *zip(*item.rows, strict=True)
                writer.write_table(pa.table(dict(zip(types, columns, strict=True)), schema))
                n_frames += len(item.rows)
            else:
                found = item
    finally:
        if writer is not None:
            writer.add_key_value_metadata({KEY: OPEN})
            writer.close()
            seal(folder / "scores.parquet")
    return found | {"n_frames": n_frames}


def decode(path: Path, wav: Path, spans: Spans) -> Iterator[Scored | dict[str, Any]]:
    """Write the audio of ``path``; yield the scores of its frames, batch by batch, and last what else was found."""
    import cv2

    cv2.setNumThreads(1)
    header, frame_rate, _ = read_header(path)
    rows: list[tuple[float, ...]] = []
    with closing(_of_spans(path, wav, header, spans) if spans else _of_all(path, wav)) as found:
        for item in found:
            if isinstance(item, str):
                reason = item
                continue
            frame, first = item
            if first:
                scores = FrameScores()
            rows.append((frame.pts, frame.t_s, first, *scores(frame.bgr())))
            if len(rows) == ROWS:
                yield Scored(frame.time_base, frame_rate, rows)
                rows = []
    if rows:
        yield Scored(frame.time_base, frame_rate, rows)
    if reason:
        wav.unlink(missing_ok=True)
    yield {
        "codec": header.codec,
        "width": header.width,
        "height": header.height,
        "fps": header.fps,
        "duration_s": round(frame.end_s, 6),
        "audio": {
            "status": "missing" if not header.has_audio else "failed" if reason else "present",
            "reason": reason,
        },
    }


def _of_all(path: Path, wav: Path) -> Generator[tuple[DecodedFrame, bool] | str]:
    """Yield each frame and whether it is the first; last why there is not all of the audio, or ""."""
    with opened(path) as container:
        stream = Stream(container)
        sounds = container.streams.audio[:1]
        sound = AudioFile(sounds[0], wav, start_s=stream.start * stream.time_base) if sounds else None
        packets: Iterator[av.Packet[Any]] = container.demux(stream.video, *sounds)
        first = True
        for packet in packets:
            if packet.stream is not stream.video and sound is not None:
                sound.add(packet)
                continue
            for frame in stream.decode(packet):
                yield frame, first
                first = False
        yield sound.close() if sound is not None else NO_AUDIO


def _of_spans(path: Path, wav: Path, header: Probe, spans: Spans) -> Generator[tuple[DecodedFrame, bool] | str]:
    """Yield each frame of the spans and whether it is the first of one; last as ``_of_all``."""
    frame = None
    for frame, first in shown(path, spans):
        yield frame, first
    if frame is None:
        raise MediaError("no frame is shown within its spans")
    yield write_spans(path, wav, spans, start_s=header.start_s) if header.has_audio else NO_AUDIO

"""The one pass over a video: its packets are read once, every frame is scored and the audio cut out."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.media.audio import AudioFile
from stepline.media.decode import DecodedFrame, Stream, opened
from stepline.media.scores import FrameScores

if TYPE_CHECKING:
    import av

ROWS = 1 << 14
"""Frames whose scores are held in memory before they are written."""


def one_pass(path: Path, folder: Path) -> Iterator[dict[str, Any]]:
    """Write ``scores.parquet`` and ``audio.wav`` of ``path`` into ``folder``; then yield, once, what was found.

    ``scores.parquet`` has a line per frame: frame, pts (in units of the metadata's ``time_base``), t_s, and
    ``FrameScores.COLUMNS``. Without readable audio there is no ``audio.wav``. Raises MediaError where a frame cannot be
    decoded.
    """
    import cv2

    cv2.setNumThreads(1)
    with opened(path) as container:
        stream = Stream(container)
        stream.use_threads()
        sounds = container.streams.audio[:1]
        wav = folder / "audio.wav"
        sound = AudioFile(sounds[0], wav, start_s=stream.start * stream.time_base) if sounds else None
        scores = ScoresFile(folder / "scores.parquet")
        packets: Iterator[av.Packet[Any]] = container.demux(stream.video, *sounds)
        for packet in packets:
            if packet.stream is not stream.video and sound is not None:
                sound.add(packet)
                continue
            for frame in stream.decode(packet):
                scores.add(frame)
        duration_s = scores.close()
        reason = sound.close() if sound is not None else "no audio stream"
        if reason:
            wav.unlink(missing_ok=True)
        status = "missing" if sound is None else "failed" if reason else "present"
        header = stream.probe()
        yield {
            "codec": header.codec,
            "width": header.width,
            "height": header.height,
            "fps": header.fps,
            "duration_s": round(duration_s, 6),
            "n_frames": scores.n_frames,
            "audio": {"status": status, "reason": reason},
        }


class ScoresFile:
    """The scores of a video's frames as Parquet, written while they come."""

    def __init__(self, path: Path) -> None:
        """Take ``path`` for at least one frame."""
        import pyarrow as pa

        self.n_frames = 0
        self._path = path
        self._scores = FrameScores()
        types = {"frame": pa.int64(), "pts": pa.int64(), "t_s": pa.float64()}
        self._schema = pa.schema(types | dict.fromkeys(FrameScores.COLUMNS, pa.float64()))
        self._rows: list[tuple[float, ...]] = []

    def add(self, frame: DecodedFrame) -> None:
        """Score the next frame."""
        import pyarrow.parquet as pq

        if not self.n_frames:
            self._schema = self._schema.with_metadata({"time_base": str(frame.time_base)})
            self._writer = pq.ParquetWriter(self._path, self._schema)
        self._rows.append((self.n_frames, frame.pts, frame.t_s, *self._scores(frame.bgr())))
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

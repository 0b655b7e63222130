"""The one pass over a video: its packets are read once, every frame is scored and the audio cut out."""

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from stepline.media.audio import Audio, AudioFile, write_spans
from stepline.media.cut import read_header
from stepline.media.decode import DamagedError, MediaError, Probe, Stream, opened, packets
from stepline.media.frame import DecodedFrame
from stepline.media.process import Decoder
from stepline.media.salvage import placed, salvaged
from stepline.media.scores import FrameScores
from stepline.media.spans import Spans, shown, within
from stepline.media.timeline import Gap, Timeline, described
from stepline.progress import reached
from stepline.seal import KEY, OPEN, seal

if TYPE_CHECKING:
    import pyarrow.parquet as pq

ROWS = 1 << 12
"""Frames whose scores are held in memory before they are handed on."""
NO_AUDIO = Audio(False, "no audio stream")
Shown = Generator[tuple[DecodedFrame, bool] | Audio]
"""Each frame and whether it is compared with none before it; last what there is of the audio."""


@dataclass(frozen=True)
class Scored:
    """Some frames in a row: pts (in units of ``time_base``), t_s, first, and ``FrameScores.COLUMNS`` of each."""

    time_base: Fraction
    frame_rate: Fraction
    rows: list[tuple[float, ...]]


class Tap(Protocol):
    """What else is made of the frames of the pass, in its process; all that it yields comes between the scores."""

    def begin(self, path: Path) -> Iterator[Any]:
        """Look at the file; raise DamagedError where it is not as its container says."""

    def take(self, frame: DecodedFrame) -> Iterator[Any]:
        """Take the next frame, in order of presentation."""

    def end(self) -> Iterator[Any]:
        """Expect no more frames."""


class Also(Protocol):
    """Who takes what a tap yields."""

    @property
    def tap(self) -> Tap | None:
        """The tap, where something is needed of the frames."""

    def take(self, item: Any) -> None:
        """Take an item."""


def one_pass(
    path: Path,
    folder: Path,
    spans: Spans = (),
    *,
    decoder: Decoder,
    duration_s: float,
    damaged: str = "partial",
    orientation: str = "upright",
    also: Also | None = None,
) -> dict[str, Any]:
    """Write ``scores.parquet`` and ``audio.wav`` of ``path`` into ``folder`` and return what was found.

    ``scores.parquet`` has a line per frame: frame, pts (in units of the metadata's ``time_base``), t_s, first (whether
    it is compared with none before it), and ``FrameScores.COLUMNS``. Without readable audio there is no ``audio.wav``;
    where parts of it cannot be decoded, they are silent. With ``spans`` only the frames that are shown within them are
    decoded and scored, counted without gaps; between spans the audio is silent.
    duration_s: the video's length, for the limit of time. damaged: ``partial``, then ``gaps`` lists what there is no
    picture of, or ``skip``, to refuse a video with gaps. orientation: ``upright`` or ``stored``. also: takes what its
    tap makes of the frames of an undamaged video that is read whole.
    Raises MediaError where no frame can be decoded within the limits, or none is shown within the spans.
    """
    asked = path, folder / "audio.wav", spans, orientation == "upright"
    tap = also.tap if also and not spans else None
    try:
        with closing(Scores(folder)) as scores:
            for item in decoder(decode, *asked, tap, duration_s=duration_s):
                if not scores.take(item) and also:
                    also.take(item)
    except DamagedError:
        with closing(Scores(folder)) as scores:
            for item in decoder(decode_salvaged, *asked, duration_s=3 * duration_s):
                scores.take(item)
        if scores.found["gaps"] and damaged == "skip":
            raise MediaError(described(scores.found["gaps"])) from None
    return scores.found


class Scores:
    """The file of scores. found: what else the pass finds."""

    def __init__(self, folder: Path) -> None:
        """Write nothing yet."""
        self.found: dict[str, Any] = {}
        self._path = folder / "scores.parquet"
        self._writer: pq.ParquetWriter | None = None
        self._n_frames = 0

    def close(self) -> None:
        """Make the file whole, and note how many frames it has."""
        if self._writer is not None:
            self._writer.add_key_value_metadata({KEY: OPEN})
            self._writer.close()
            seal(self._path)
        self.found["n_frames"] = self._n_frames

    def take(self, item: object) -> bool:
        """Take what a pass yields; return whether it is of scores, or what else is found."""
        if isinstance(item, dict):
            self.found |= item
        elif isinstance(item, Scored):
            self._write(item)
            reached(item.rows[-1][1])
        else:
            return False
        return True

    def _write(self, item: Scored) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        types = {"frame": pa.int64(), "pts": pa.int64(), "t_s": pa.float64(), "first": pa.bool_()}
        types |= dict.fromkeys(FrameScores.COLUMNS, pa.float64())
        schema = pa.schema(types, {"time_base": str(item.time_base), "frame_rate": str(item.frame_rate)})
        self._writer = self._writer or pq.ParquetWriter(self._path, schema)
        columns = range(self._n_frames, self._n_frames + len(item.rows)), *zip(*item.rows, strict=True)
        self._writer.write_table(pa.table(dict(zip(types, columns, strict=True)), schema))
        self._n_frames += len(item.rows)


def decode(path: Path, wav: Path, spans: Spans, turned: bool, tap: Tap | None = None) -> Iterator[Any]:
    """Write the audio of ``path``; yield the scores of its frames, batch by batch, and last what else was found.

    Between them comes what ``tap`` yields. Raises DamagedError where a frame is not as the container says.
    """
    header, frame_rate, _ = read_header(path)
    shown = _of_spans(path, wav, header, spans, turned) if spans else _of_all(path, wav, turned)
    if tap is not None:
        yield from tap.begin(path)
    yield from _scored(shown, header, frame_rate, wav, turned, tap=tap)


def decode_salvaged(path: Path, wav: Path, spans: Spans, turned: bool) -> Iterator[Scored | dict[str, Any]]:
    """Do what ``decode`` does with a file that is damaged, or whose packets do not say when frames are shown."""
    header, frame_rate, _ = read_header(path)
    timeline = salvaged(path)
    yield from _scored(
        _of_salvaged(path, wav, timeline, header, spans, turned), header, frame_rate, wav, turned, timeline.gaps
    )


def _scored(
    found: Shown,
    header: Probe,
    frame_rate: Fraction,
    wav: Path,
    turned: bool,
    gaps: Sequence[Gap] = (),
    tap: Tap | None = None,
) -> Iterator[Any]:
    import cv2

    cv2.setNumThreads(0)  # 1 hangs in a fork of a process with OpenCV's threads
    rows: list[tuple[float, ...]] = []
    with closing(found):
        for item in found:
            if isinstance(item, Audio):
                audio = item
                continue
            frame, first = item
            if first:
                scores = FrameScores()
            rows.append((frame.pts, frame.t_s, first, *scores(frame.bgr())))
            if len(rows) == ROWS:
                yield Scored(frame.time_base, frame_rate, rows)
                rows = []
            if tap is not None:
                yield from tap.take(frame)
    if tap is not None:
        yield from tap.end()
    if rows:
        yield Scored(frame.time_base, frame_rate, rows)
    if not audio.there:
        wav.unlink(missing_ok=True)
    width, height = (header.width, header.height)[:: -1 if turned and header.rotation % 180 else 1]
    yield {
        "codec": header.codec,
        "width": width,
        "height": height,
        "fps": header.fps,
        "duration_s": round(frame.end_s, 6),
        "gaps": [list(gap) for gap in gaps],
        "audio": {
            "status": "missing" if not header.has_audio else "present" if audio.there else "failed",
            "reason": audio.reason,
        },
    }


def _of_all(path: Path, wav: Path, turned: bool) -> Shown:
    with opened(path) as container:
        stream = Stream(container, turned=turned)
        audio = AudioFile(stream.sound, wav, start_s=stream.start * stream.time_base) if stream.sound else None
        first = True
        for packet in packets(container, stream.video, *([stream.sound] if stream.sound else [])):
            if packet.stream is not stream.video and audio is not None:
                if reason := stream.complaints():
                    raise DamagedError(f"damaged: {reason}")
                with stream.complaints.not_of_pictures():
                    audio.add(packet)
                continue
            for frame in stream.decode(packet):
                yield frame, first
                first = False
        yield audio.close() if audio is not None else NO_AUDIO


def _of_spans(path: Path, wav: Path, header: Probe, spans: Spans, turned: bool) -> Shown:
    frame = None
    for frame, first in shown(path, spans, turned=turned):
        yield frame, first
    if frame is None:
        raise MediaError("no frame is shown within its spans")
    yield write_spans(path, wav, spans, start_s=header.start_s) if header.has_audio else NO_AUDIO


def _of_salvaged(path: Path, wav: Path, timeline: Timeline, header: Probe, spans: Spans, turned: bool) -> Shown:
    lost = timeline.lost
    with opened(path) as container:
        stream = Stream(container, turned=turned)
        audio = AudioFile(stream.sound, wav, start_s=Fraction(0)) if stream.sound and not spans else None
        frames = placed(container, stream, timeline, audio.add if audio else None)
        after_gap = {int(timeline.pts[place]) for place in range(1, len(lost)) if lost[place - 1]}
        none = True
        for frame, first in within((frame for _, frame in frames), spans or [(0.0, inf)]):
            yield frame, first or none or frame.pts in after_gap
            none = False
        if none:
            raise MediaError("no frame is shown within its spans")
        if audio is not None:
            yield audio.close()
        else:
            yield write_spans(path, wav, spans, start_s=header.start_s) if header.has_audio else NO_AUDIO

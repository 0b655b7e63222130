"""The single pass over a video: its packets are read once, every frame is scored and the audio is extracted."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from fractions import Fraction
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from stepline.media.audio import Audio, AudioFile, Source, audio_file, louder, write_spans
from stepline.media.decode import DamagedError, MediaError, Probe, Stream, opened, packets, read_header
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
"""Frames whose scores are collected before they are written."""
Shown = Generator[tuple[DecodedFrame, bool] | Audio]
"""Each frame, with True if it is not compared with a previous one; finally the audio's result."""


@dataclass(frozen=True)
class Scored:
    """Consecutive frames. rows: pts (in units of ``time_base``), t_s, first, and ``FrameScores.COLUMNS`` of each."""

    time_base: Fraction
    frame_rate: Fraction
    rows: list[tuple[float, ...]]


class Tap(Protocol):
    """An additional consumer of the pass's frames, in its process; its items are yielded between the scores."""

    def begin(self, path: Path) -> Iterator[Any]:
        """Inspect the file; raise DamagedError if it does not match its container."""

    def take(self, frame: DecodedFrame) -> Iterator[Any]:
        """Process the next frame, in order of presentation."""

    def end(self) -> Iterator[Any]:
        """Finish after the last frame."""


class Also(Protocol):
    """The receiver of a tap's items."""

    @property
    def tap(self) -> Tap | None:
        """The tap, or None if no frames are needed."""

    def take(self, item: Any) -> None:
        """Process an item."""


def one_pass(
    path: Path,
    folder: Path,
    spans: Spans = (),
    *,
    decoder: Decoder,
    duration_s: float,
    damaged: str = "partial",
    orientation: str = "upright",
    track: int | None = None,
    also: Also | None = None,
) -> dict[str, Any]:
    """Write ``scores.parquet`` and ``audio.wav`` of ``path`` into ``folder`` and return the video's properties.

    ``scores.parquet`` has a row per frame: frame, pts (in units of the metadata's ``time_base``), t_s, first (whether
    it is not compared with a previous frame), and ``FrameScores.COLUMNS``. Without readable audio there is no
    ``audio.wav``; parts of the audio that cannot be decoded are silent. With ``spans``, only the frames within them are
    decoded and scored, and numbered without gaps; the audio is silent between spans.
    duration_s: the video's length, for the time limit. damaged: with ``partial``, ``gaps`` lists the stretches without
    a picture; ``skip`` refuses a video with gaps. orientation: ``upright`` or ``stored``. track: the number of the
    audio track, counted from 1. None means the default track, or another track or channel if only that has sound: then
    ``audio`` of the properties names it. also: receives the items of its tap, if the video is undamaged and read whole.
    Raises MediaError if no frame can be decoded within the limits, or none is shown within the spans.
    """
    asked = path, folder / "audio.wav", spans, orientation == "upright", track
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
    """The file of scores. found: the other results of the pass."""

    def __init__(self, folder: Path) -> None:
        """Prepare the file; it is created with the first scores."""
        self.found: dict[str, Any] = {}
        self._path = folder / "scores.parquet"
        self._writer: pq.ParquetWriter | None = None
        self._n_frames = 0

    def close(self) -> None:
        """Complete the file and record its number of frames."""
        if self._writer is not None:
            self._writer.add_key_value_metadata({KEY: OPEN})
            self._writer.close()
            seal(self._path)
        self.found["n_frames"] = self._n_frames

    def take(self, item: object) -> bool:
        """Process an item of the pass; return False if it is neither scores nor other results."""
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


def decode(
    path: Path, wav: Path, spans: Spans, turned: bool, track: int | None = None, tap: Tap | None = None
) -> Iterator[Any]:
    """Write the audio of ``path``; yield the scores of its frames in batches, and finally the other results.

    The items of ``tap`` are yielded in between. Raises DamagedError if a frame does not match the container.
    """

    def shown(source: Source) -> Shown:
        return _of_spans(path, wav, header, spans, turned, source) if spans else _of_all(path, wav, turned, source)

    header = read_header(path)
    if tap is not None:
        yield from tap.begin(path)
    yield from _scored(shown, track, path, header, wav, turned, tap=tap)


def decode_salvaged(
    path: Path, wav: Path, spans: Spans, turned: bool, track: int | None = None
) -> Iterator[Scored | dict[str, Any]]:
    """Do the same as ``decode`` for a file that is damaged, or whose packets have no presentation times."""

    def shown(source: Source) -> Shown:
        return _of_salvaged(path, wav, timeline, spans, turned, source)

    header = read_header(path)
    timeline = salvaged(path)
    yield from _scored(shown, track, path, header, wav, turned, timeline.gaps)


def _scored(
    shown: Callable[[Source], Shown],
    track: int | None,
    path: Path,
    header: Probe,
    wav: Path,
    turned: bool,
    gaps: Sequence[Gap] = (),
    tap: Tap | None = None,
) -> Iterator[Any]:
    import cv2

    cv2.setNumThreads(0)  # 1 hangs in the fork of a process with OpenCV threads
    rows: list[tuple[float, ...]] = []
    with closing(shown(Source(track))) as found:
        for item in found:
            if isinstance(item, Audio):
                audio = item
                continue
            frame, first = item
            if first:
                scores = FrameScores()
            rows.append((frame.pts, frame.t_s, first, *scores(frame.bgr())))
            if len(rows) == ROWS:
                yield Scored(frame.time_base, frame.frame_rate, rows)
                rows = []
            if tap is not None:
                yield from tap.take(frame)
    if tap is not None:
        yield from tap.end()
    if rows:
        yield Scored(frame.time_base, frame.frame_rate, rows)
    unheard = audio.quiet and header.audio_tracks and track is None
    chosen = louder(path, audio.loud_s) if unheard else None
    if chosen:
        with closing(shown(chosen)) as found:
            (audio,) = (item for item in found if isinstance(item, Audio))
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
            "status": "present" if audio.there else "failed" if header.audio_tracks else "missing",
            "reason": "; ".join(filter(None, [audio.reason, _described(chosen) if audio.there else ""])),
            "loud_s": audio.loud_s,
        },
    }


def _described(chosen: Source | None) -> str:
    if chosen is None:
        return ""
    used = f"channel {chosen.channel} of track {chosen.track}" if chosen.channel else f"track {chosen.track}"
    return f"{used} is used, because the default track is quiet: see media.track"


def _of_all(path: Path, wav: Path, turned: bool, source: Source) -> Shown:
    with opened(path) as container, ExitStack() as stack:
        stream = Stream(container, turned=turned, track=source.track)
        audio = _begun(stream, wav, stream.start * stream.time_base, (), source, stack)
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
        yield audio.result() if audio is not None else _no_audio(source)


def _begun(
    stream: Stream, wav: Path, start_s: Fraction, spans: Spans, source: Source, stack: ExitStack
) -> AudioFile | None:
    """Return the writer of the stream's audio, which ends with ``stack``, or None if there is no audio."""
    if stream.sound is None:
        return None
    return stack.enter_context(audio_file(stream.sound, wav, start_s=start_s, channel=source.channel, spans=spans))


def _no_audio(source: Source) -> Audio:
    return Audio(False, f"there is no audio track {source.track}" if source.track else "no audio stream")


def _of_spans(path: Path, wav: Path, header: Probe, spans: Spans, turned: bool, source: Source) -> Shown:
    frame = None
    for frame, first in shown(path, spans, turned=turned):
        yield frame, first
    if frame is None:
        raise MediaError("no frame is shown within its spans")
    there = header.audio_tracks >= (source.track or 1)
    yield write_spans(path, wav, spans, start_s=header.start_s, source=source) if there else _no_audio(source)


def _of_salvaged(path: Path, wav: Path, timeline: Timeline, spans: Spans, turned: bool, source: Source) -> Shown:
    lost = timeline.lost
    with opened(path) as container, ExitStack() as stack:
        stream = Stream(container, turned=turned, track=source.track)
        audio = _begun(stream, wav, Fraction(0), spans, source, stack)
        frames = placed(container, stream, timeline, audio.add if audio else None)
        after_gap = {int(timeline.pts[place]) for place in range(1, len(lost)) if lost[place - 1]}
        none = True
        for frame, first in within((frame for _, frame in frames), spans or [(0.0, inf)]):
            yield frame, first or none or frame.pts in after_gap
            none = False
        if none:
            raise MediaError("no frame is shown within its spans")
        for _ in frames if audio else ():  # the audio of the last span may follow its pictures
            pass
        yield audio.result() if audio is not None else _no_audio(source)

"""The page of a data set: its videos, each with shots, segments and what is said."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.asr import transcript
from stepline.asr.transcript import Sentence
from stepline.datasets.segments import LabelledSpan, read_segments
from stepline.pipeline import Pipeline
from stepline.report import data_address, write_html
from stepline.report.shots import read_shots
from stepline.report.summary import headline, summarise
from stepline.report.thumbnails import read_thumbnails

VIDEOS_SHOWN = 100
"""Of a larger data set the first are shown one by one; the table has them all."""
ASIDE = ("video", "reason", "source", "needs", "command")
"""Columns that the page's table shows otherwise."""
OPEN = 5
"""Videos whose part of the page is unfolded."""


@dataclass(frozen=True)
class Bar:
    """A piece of a strip over a video's time, in percent of it, and what it says."""

    left: float
    width: float
    title: str
    label: str = ""
    number: int = 0


def write_page(pipeline: Pipeline, path: Path) -> None:
    """Write the page as one self-contained HTML file: no script, no network, same inputs same bytes."""
    made = summarise(pipeline)
    ids = {row["video"] for row in made.rows}
    name, given = pipeline.name, pipeline.dataset.segments
    segments = read_segments(name, given, ids) if given else {}
    labels = {
        label: number for number, label in enumerate(dict.fromkeys(s.label for v in segments.values() for s in v))
    }
    stages = pipeline.demand.stages
    found = read_thumbnails(name, pipeline.videos.all_shards if "pictures" in stages else [])
    videos = []
    for row in made.used[:VIDEOS_SHOWN]:
        video, gaps = row["video"], row["gaps"]
        end_s = max([row["duration_s"] or 0, *(gap_end_s for _, gap_end_s, _ in gaps)])
        shots = read_shots(paths.shots(name) / f"{video}.parquet") if "shots" in stages else []
        videos.append(
            {
                "row": row,
                "facts": _facts(row),
                "end_s": end_s,
                "gaps": [_bar(start, end, end_s, f"absent: {why}") for start, end, why in gaps],
                "shots": [_bar(start, end, end_s, f"shot {n}", number=n) for n, (start, end) in enumerate(shots, 1)],
                "segments": [
                    _bar(s.start_s, s.end_s, end_s, s.label or "segment", s.label, labels[s.label])
                    for s in segments.get(video, ())
                    if s.start_s < end_s
                ],
                "pictures": [
                    (shot + 1, *shots[shot], data_address("image/jpeg", file.read_bytes()))
                    for shot, file in found.pictures.get(video, {}).items()
                    if shot < len(shots) and file.exists()
                ],
                "notes": [note for note in (found.reasons.get(video), _beyond(segments.get(video, ()), end_s)) if note],
                "speech": _speech(pipeline, row),
            }
        )
    write_html(
        path,
        "page.html.j2",
        title=pipeline.dataset.title,
        headline=headline(made),
        made=made,
        columns=[column for column in made.columns if column not in ASIDE],
        videos=videos,
        left_out=len(made.used) - len(videos),
        opened=OPEN,
        clock=clock,
    )


def clock(seconds: float) -> str:
    """Return a time as ``1:02:03`` or ``2:03``."""
    whole = int(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02d}:{rest % 60:02d}" if hours else f"{rest // 60}:{rest % 60:02d}"


def _bar(start_s: float, end_s: float, of_s: float, what: str, label: str = "", number: int = 0) -> Bar:
    left, right = (100 * min(time, of_s) / of_s for time in (start_s, end_s))
    title = f"{what}, {start_s:.2f} to {end_s:.2f} s"
    return Bar(round(left, 3), round(right - left, 3), title, label, number)


def _beyond(segments: Sequence[LabelledSpan], end_s: float) -> str:
    beyond = [segment for segment in segments if segment.end_s > end_s]
    return f"{len(beyond)} of {len(segments)} segments end after the video does" if beyond else ""


def _facts(row: dict[str, Any]) -> list[str]:
    absent = [f"{row['absent_s']:.1f} s absent"] if row["gaps"] else []
    length = [clock(row["duration_s"])] if row["duration_s"] else []
    facts = [*length, *absent, f"{row['width']} x {row['height']}", f"{row['fps']} frames per second"]
    counted = [column for column in ("shots", "sentences", "words") if row[column] != ""]
    return facts + [f"{row[column]} {column if row[column] != 1 else column[:-1]}" for column in counted]


def _speech(pipeline: Pipeline, row: dict[str, Any]) -> Sequence[Sentence]:
    if not row["sentences"]:
        return ()
    return transcript.read(pipeline.speech.readable.folder / f"{row['video']}.parquet")

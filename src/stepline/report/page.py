"""The page of a data set: its videos in a table, each with its timeline."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.pipeline import Pipeline
from stepline.report import data_address, write_html
from stepline.report.clock import clock
from stepline.report.shots import read_shots
from stepline.report.summary import headline, summarise
from stepline.report.thumbnails import read_thumbnails
from stepline.report.timeline.overview import HEIGHT, WIDTH
from stepline.report.timeline.overview import path as drawn
from stepline.report.timeline.write import page_of, write_timeline
from stepline.search.sources import tower
from stepline.search.transcripts import Transcripts

TIMELINES = 100
"""Of a larger data set, the first videos have a picture, a strip and a timeline; the table has them all."""
ASIDE = ("video", "status", "reason", "source", "needs", "command")
"""Columns that the page's table shows otherwise."""


def write_page(pipeline: Pipeline, path: Path) -> None:
    """Write the page, and the timelines that it links to: self-contained HTML, no network, same inputs same bytes."""
    made = summarise(pipeline)
    shown = {row["video"] for row in made.used[:TIMELINES]}
    found = read_thumbnails(pipeline.name, pipeline.videos.all_shards if _has(pipeline, "pictures") else [])
    _remove_stale(pipeline.name, {row["video"] for row in made.rows})
    videos = []
    for row in made.rows:
        video = row["video"]
        about: dict[str, Any] = {"row": row, "link": "", "picture": "", "shots": "", "end_s": _end_s(row)}
        if video in shown:
            shots = read_shots(paths.shots(pipeline.name) / f"{video}.parquet") if _has(pipeline, "shots") else []
            pictures = [file for file in found.pictures.get(video, {}).values() if file.exists()]
            about |= {
                "link": f"videos/{write_timeline(pipeline, row).name}",
                "picture": data_address("image/jpeg", pictures[len(pictures) // 2].read_bytes()) if pictures else "",
                "shots": drawn(shots, about["end_s"]),
                "gaps": drawn([(start_s, end_s) for start_s, end_s, _ in row["gaps"]], about["end_s"]),
            }
        videos.append(about)
    write_html(
        path,
        "page.html.j2",
        title=pipeline.dataset.title,
        dataset=pipeline.name,
        headline=headline(made),
        made=made,
        columns=[name for name in made.columns if name not in ASIDE and any(row[name] != "" for row in made.rows)],
        videos=videos,
        timelines=TIMELINES,
        left_out=len(made.used) - len(shown),
        strips=any(each["shots"] for each in videos),
        searched=_searched(pipeline),
        box=f"0 0 {WIDTH} {HEIGHT}",
        clock=clock,
    )


def _has(pipeline: Pipeline, stage: str) -> bool:
    return stage in pipeline.demand.stages


def _end_s(row: dict[str, Any]) -> float:
    return float(max([row["duration_s"] or 0, *(end_s for _, end_s, _ in row["gaps"])]))


def _searched(pipeline: Pipeline) -> bool:
    """Return whether there is something to search: what is said, or what a network with a text tower sees."""
    seen = any(tower(pipeline, name) for name in pipeline.features.computed)
    return seen or (_has(pipeline, "speech") and bool(Transcripts(pipeline).videos))


def _remove_stale(dataset: str, videos: set[str]) -> None:
    """Remove the timelines of videos that are not listed any more."""
    for file in page_of(dataset, "a").parent.glob("*.html"):
        if file.stem not in videos:
            with suppress(FileNotFoundError):
                file.unlink()

"""The report of a data set: a table of its videos with links to their timelines."""

import json
import re
from collections.abc import Set
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.datasets.segments import known_ends_s, read_segments
from stepline.pipeline import Pipeline
from stepline.report import data_address, write_html
from stepline.report.clock import clock
from stepline.report.shots import read_shots
from stepline.report.summary import end_s, headline, summarise
from stepline.report.thumbnails import read_thumbnails
from stepline.report.timeline.overview import HEIGHT, WIDTH
from stepline.report.timeline.overview import path as drawn
from stepline.report.timeline.write import page_of, write_timeline
from stepline.search.sources import tower
from stepline.search.transcripts import Transcripts

TIMELINES = 100
"""Maximum number of videos with picture, strip and timeline; the table contains all videos."""
ASIDE = ("video", "status", "reason", "source", "needs", "command")
"""Columns that the page's table shows in another form."""


def write_page(pipeline: Pipeline, path: Path) -> None:
    """Write the page and the linked timelines as self-contained HTML. Equal inputs produce equal bytes."""
    made = summarise(pipeline)
    shown = {row["video"] for row in made.used[:TIMELINES]}
    found = read_thumbnails(pipeline.name, pipeline.videos.all_shards if _has(pipeline, "pictures") else [])
    _remove_stale(pipeline.name, shown, {row["video"] for row in made.used})
    late: list[str] = []
    if given := pipeline.dataset.segments:
        known = known_ends_s(pipeline.name)
        ends_s = {row["video"]: max(end_s(row), known.get(row["video"], 0.0)) for row in made.rows}
        read_segments(pipeline.name, given, ends_s, ends_s=ends_s, say=late.append)
    videos = []
    for row in made.rows:
        video = row["video"]
        about: dict[str, Any] = {"row": row, "link": "", "picture": "", "shots": "", "end_s": end_s(row)}
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
        late=late,
        box=f"0 0 {WIDTH} {HEIGHT}",
        clock=clock,
    )


def _has(pipeline: Pipeline, stage: str) -> bool:
    return stage in pipeline.demand.stages


def _searched(pipeline: Pipeline) -> bool:
    """Return whether the data set can be searched: by its transcripts or by a network with a text tower."""
    seen = any(tower(pipeline, name) for name in pipeline.features.computed)
    return seen or (_has(pipeline, "speech") and bool(Transcripts(pipeline).videos))


def _remove_stale(dataset: str, shown: Set[str], used: Set[str]) -> None:
    """Remove timelines that are not written again, and subtitles and search pages of videos that are no longer read."""
    for file in page_of(dataset, "a").parent.glob("[!.]*"):
        if file.stem not in (shown if file.suffix == ".html" else used):
            file.unlink(missing_ok=True)
    for file in Path("results", dataset, "search").glob("[!.]*.html"):
        found = re.search('id="data">(.*)</script>', file.read_text(encoding="utf-8"))
        if found and not used >= json.loads(found[1])["videos"].keys():
            file.unlink(missing_ok=True)

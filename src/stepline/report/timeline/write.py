"""The page of a timeline: ``results/<data set>/videos/<video>.html``."""

import json
import shlex
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.availability import read_availability
from stepline.benchmark.timed import ERRORS
from stepline.pipeline import Pipeline
from stepline.report import data_address, write_html
from stepline.report.clock import clock
from stepline.report.timeline.data import (
    Lane,
    curve_lanes,
    own_segments,
    sentences,
    shot_lane,
    sound_lane,
    speech_lane,
    strip_lanes,
    track_lane,
)
from stepline.report.timeline.overview import HEIGHT, WIDTH, path
from stepline.report.timeline.player import player
from stepline.report.timeline.subtitles import FORMATS, subtitles
from stepline.report.timeline.track import Track

SCRIPTS = ("view", "draw", "player", "moment", "keys")


def page_of(dataset: str, video: str) -> Path:
    """Return the path of a video's timeline."""
    return Path("results", dataset, "videos", f"{video}.html")


def write_timeline(pipeline: Pipeline, row: dict[str, Any], tracks: Sequence[Track] = (), text: str = "") -> Path:
    """Write the timeline of a video as one self-contained HTML file and return its path.

    Equal inputs produce equal bytes. row: the video's row in ``stepline.report.summary``. tracks: true and predicted
    steps. text: a text to compare the video with, or "". Raises ConfigError or MissingError if a text is given and
    nothing can be compared with it.
    """
    video, page = row["video"], page_of(pipeline.name, row["video"])
    shots, (said, language) = shot_lane(pipeline, video), sentences(pipeline, video)
    all_tracks = [*own_segments(pipeline, row), *tracks]
    lanes: list[Lane] = [
        *filter(None, (shots, sound_lane(pipeline, video), speech_lane(said, language))),
        *map(track_lane, all_tracks),
        *(curve_lanes(pipeline, video, text) if text else ()),
        *strip_lanes(pipeline, video),
    ]
    gaps = [[start_s, end_s, f"absent: {why}", ""] for start_s, end_s, why in row["gaps"]]
    if gaps:
        lanes.append({"kind": "spans", "name": "Gaps", "step": "gap", "spans": gaps})
    ends_s = [span[1] for lane in lanes if lane.get("step") in ("shot", "gap") for span in lane["spans"]]
    end_s = max([row["duration_s"] or 0, *ends_s]) or max(
        [1.0, *(s[1] for lane in lanes for s in lane.get("spans", ()))]
    )
    availability = paths.availability(pipeline.name, pipeline.videos.shards[video])
    record = read_availability(availability).get(video) if availability.exists() else None
    url = next((each.url for each in pipeline.dataset.videos() if each.id == video), "")
    played = player(record, page, url)
    labels = [span[2] for lane in lanes if lane.get("step") in ("segment", "predicted") for span in lane["spans"]]
    data = {
        "video": video,
        "end": round(end_s, 3),
        "address": played.address,
        "gaps": [[start_s, end_s] for start_s, end_s, *_ in gaps],
        "labels": list(dict.fromkeys(filter(None, labels))),
        "lanes": lanes,
    }
    write_html(
        page,
        "timeline/timeline.html.j2",
        title=pipeline.dataset.title,
        dataset=pipeline.name,
        row=row,
        data=data,
        json=_safe(data),
        style=_parts("timeline.css"),
        script=_parts(*(f"{name}.js" for name in SCRIPTS)),
        player=played,
        show=shlex.join(["stepline", "show", pipeline.name, video]),
        subtitles={form: data_address(f"text/{form}", subtitles(said, form).encode()) for form in FORMATS if said},
        overview=[(lane, *_overview(lane["spans"], end_s)) for lane in lanes if lane.get("spans")],
        box=f"0 0 {WIDTH} {HEIGHT}",
        report="report.html" in pipeline.targets or page.parent.with_name("report.html").exists(),
        notes=[f"{lane['name']}: {lane['note']}" for lane in lanes if lane.get("note")],
        clock=clock,
    )
    return page


def _overview(spans: Sequence[Sequence[Any]], end_s: float) -> tuple[str, str]:
    """Return the correct spans and the errors as paths."""
    errors = [span for span in spans if span[3] in ERRORS]
    return path([(s[0], s[1]) for s in spans if s not in errors], end_s), path([(s[0], s[1]) for s in errors], end_s)


def _safe(data: dict[str, Any]) -> Any:
    """Return data as JSON that is safe inside a script element: it contains no ``<``."""
    from markupsafe import Markup

    return Markup(json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"))


def _parts(*names: str) -> Any:
    from markupsafe import Markup

    texts = (files(__package__).joinpath(name).read_text(encoding="utf-8") for name in names)
    return Markup("\n".join(texts).rstrip())

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.availability import Record, write_availability
from stepline.benchmark import Prediction
from stepline.report import figure_segments
from stepline.runs.predictions import write_predictions
from stepline.runs.shown import lowest_seed, timelines
from tests.benchmark.tiny import Tiny, tiny, write_releases


@dataclass(frozen=True, kw_only=True)
class Spans(Prediction):
    """Segments of a video."""

    segments: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Annotated:
    duration_s: float
    segments: tuple[tuple[float, float], ...]


TRUTH = {video: Annotated(60, ((0, 5), (10, 20))) for video in "efgh"}


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tiny:
    write_releases()
    monkeypatch.setattr(Tiny, "prediction", Spans)
    made = tiny(tmp_path)
    for entry, release, videos in (("three", "first", "efgh"), ("drawn", "first", "f"), ("three", "second", "e")):
        each = [(seed, video) for seed in (7, 2) for video in videos]
        spans = [
            Spans(seed=seed, split="test", video=video, segments=((0, float(seed)), (seed + 1.0, 9.0)))
            for seed, video in each
        ]
        spec = made.spec(made.job(release, entry, "all"))
        path = paths.predictions("tiny", release, entry, "all")
        write_predictions(path, Spans, spans, spec=spec, needs=[], selection="")
    return made


def test_of_each_entry_its_lowest_seed_is_shown(made: Tiny) -> None:
    found = lowest_seed(made, "first", ["three", "drawn", "four", "nobody"])
    assert {entry: [(each.seed, each.video) for each in listed] for entry, listed in found.items()} == {
        "three": [(2, "e"), (2, "f"), (2, "g"), (2, "h")],
        "drawn": [(2, "f")],
    }


def test_videos_stand_over_time_with_what_is_annotated_and_those_that_are_there_with_a_command(made: Tiny) -> None:
    pictures = timelines(made, {"drawn": "Drawn", "three": "Three"}, lambda release: TRUTH)
    assert [picture.caption for picture in pictures] == ["e, first", "f, first", "g, first", "e, second"]
    assert pictures[1].alt == "Segments of f over time: annotated 2; Drawn 2; Three 2"
    assert pictures[0].alt == "Segments of e over time: annotated 2; Three 2"
    for record in (Record(video="e", status="present"), Record(video="f", status="failed")):
        for dataset in ("first", "second"):
            write_availability(paths.videos(dataset) / f"{record.video}.json", [record])
    pictures = timelines(made, {"drawn": "Drawn", "three": "Three"}, lambda release: TRUTH)
    assert [picture.command for picture in pictures] == [
        "stepline show first e --entry three --release first",
        "",
        "",
        "stepline show second e --entry three --release second",
    ]


def test_of_each_video_its_own_segments_are_drawn_over_its_duration(
    made: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Any] = []
    draw = figure_segments.segments
    monkeypatch.setattr(
        figure_segments, "segments", lambda duration_s, tracks: drawn.append((duration_s, tracks)) or draw(9, tracks)
    )
    pictures = timelines(made, {"three": "Three"}, lambda release: TRUTH | {"e": Annotated(30, ((1, 2),))}, most=1)
    assert drawn[:2] == [
        (30, {"annotated": ((1, 2),), "Three": ((0, 2.0),)}),
        (60, {"annotated": ((0, 5), (10, 20)), "Three": ((0, 2.0),)}),
    ]
    assert pictures[0].alt == "Segments of e over time: annotated 1; Three 1"

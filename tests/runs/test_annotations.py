"""The annotations of a user's data set, and of a benchmark's."""

from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.availability import Record, write_availability
from stepline.benchmark import InTime, Timed
from stepline.datasets.dataset import Dataset
from stepline.datasets.schema import Video
from stepline.datasets.segments import LabelledSpan
from stepline.errors import ReleaseError
from stepline.features.export.job import Annotated
from stepline.io import write_text
from stepline.runs.annotations import annotations
from tests.benchmark.tiny import Tiny, tiny

VIDEOS = (Video(id="x", split="val", duration_s=9.5), Video(id="y", duration_s=8.0))


def test_of_a_users_data_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_text("segments.csv", "video,start_s,end_s,label\nx,2,3,stir\nx,0,1.5,cut\n")
    write_text(paths.shards("mine"), "video,shard\nx,000\ny,000\n")
    records = [Record(video="x", status="present", duration_s=10.0), Record(video="y", status="gone")]
    write_availability(paths.availability("mine", "000"), records)
    mine = Dataset(name="mine", title="mine", videos=lambda: VIDEOS, segments="segments.csv")
    assert annotations(mine, []) == {
        "x": Annotated(
            split="val", duration_s=10.0, segments=[LabelledSpan(0.0, 1.5, "cut"), LabelledSpan(2.0, 3.0, "stir")]
        ),
        "y": Annotated(duration_s=8.0),
    }


def in_time(self: Tiny, inputs: Any, video: str, made: None) -> InTime | None:
    return InTime(truth=(Timed(0, 5, inputs.release),)) if video == "e" else None


def test_of_a_benchmark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Tiny, "in_time", in_time)
    made = tiny(tmp_path)
    dataset = made.datasets["first"]
    found = annotations(dataset, [made])
    assert found.keys() == {video.id for video in dataset.videos()}
    assert {video: each.segments for video, each in found.items() if each.segments} == {
        "e": [LabelledSpan(0, 5, "first")]
    }
    assert found["e"].split == "test"


def test_an_absent_release_is_one_line() -> None:
    absent = Dataset(name="first", title="first", videos=tuple, listed_by="tiny/first")
    with pytest.raises(ReleaseError, match="^first lists no videos: run `stepline fetch tiny/first`$"):
        annotations(absent, [])

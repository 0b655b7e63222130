"""The annotations of a user's data set, and of a benchmark's."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline import paths
from stepline.availability import Record, write_availability
from stepline.backbones.histogram import HistogramSpec
from stepline.benchmark import InTime, Timed
from stepline.cli import main
from stepline.datasets.dataset import Dataset
from stepline.datasets.schema import Video
from stepline.datasets.segments import LabelledSpan
from stepline.errors import ReleaseError
from stepline.features import store
from stepline.features.export.job import Annotated
from stepline.io import read_json, write_json, write_text
from stepline.runs.annotations import annotations
from tests.benchmark.tiny import Tiny, tiny, write_releases

VIDEOS = (Video(id="x", split="val", duration_s=9.5), Video(id="y", duration_s=8.0))


def test_of_a_users_data_set() -> None:
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
    monkeypatch.setattr(Tiny, "in_time", in_time)
    write_releases()
    made = tiny(tmp_path)
    dataset = made.datasets["second"]
    found = annotations(dataset, [made])
    assert found.keys() == {video.id for video in dataset.videos()}
    assert {video: each.segments for video, each in found.items() if each.segments} == {
        "e": [LabelledSpan(0, 5, "second")]
    }
    assert found["e"].split == "test"


def test_of_several_releases_the_first_that_has_segments_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def of_release(self: Tiny, inputs: Any, video: str, made: None) -> InTime | None:
        truth = (Timed(0, 5, inputs.release),) if video == "e" or (video, inputs.release) == ("f", "second") else ()
        return InTime(truth=truth)

    monkeypatch.setattr(Tiny, "in_time", of_release)
    monkeypatch.setattr(Tiny, "dataset", lambda self, release: "first")
    write_releases()
    made = tiny(tmp_path)
    found = annotations(made.datasets["first"], [made])
    labels = {video: [each.label for each in about.segments] for video, about in found.items() if about.segments}
    assert labels == {"e": ["first"], "f": ["second"]}


def test_an_absent_release_is_one_line() -> None:
    absent = Dataset(name="first", title="first", videos=tuple, listed_by="tiny/first")
    with pytest.raises(ReleaseError, match="^first lists no videos: run `stepline fetch tiny/first`$"):
        annotations(absent, [])


def test_no_export_has_times_after_the_end(capsys: pytest.CaptureFixture[str]) -> None:
    Path("videos").mkdir()
    for video in "xy":
        Path(f"videos/{video}.webm").touch()
    write_text("config.yaml", "datasets: {mine: {videos: videos, segments: segments.csv}}")
    write_text("segments.csv", "video,start_s,end_s,label\nx,2,300,stir\nx,250,999,pour\ny,0,9,cut\ny,12,13,wipe\n")
    write_text(paths.shards("mine"), "video,shard\nx,000\ny,000\n")
    records = [Record(video="x", status="present", duration_s=9.6), Record(video="y", status="present")]
    write_availability(paths.availability("mine", "000"), records)
    spec = HistogramSpec()
    write_json(paths.spec_record(spec), spec.record())
    rows = np.ones((10, 768), np.float32)
    store.write(paths.features("mine", "000", spec), spec, {"x": rows, "y": rows[:8]}, 1.0)
    for form in ("actionformer", "pdvc"):
        assert main(["bank", "export", "histogram", "mine", form, "--form", form]) == 0
    line = (
        "segments.csv: 3 of 4 segments lie after the end of their video (2 left out, 1 cut to its end), the first in "
        "line 2: x ends at 9.6 s; times are in seconds"
    )
    assert capsys.readouterr().out.splitlines() == [
        line, "actionformer: 2 videos, 2 with segments", line, "pdvc: 2 videos, 2 with segments"
    ]  # fmt: skip
    database = read_json("actionformer/annotations.json")["database"]
    assert {video: each["duration"] for video, each in database.items()} == {"x": 9.6, "y": 8.0}
    assert {video: [a["segment"] for a in each["annotations"]] for video, each in database.items()} == {
        "x": [[2.0, 9.6]], "y": [[0.0, 8.0]]
    }  # fmt: skip
    assert {each["subset"] for each in database.values()} == {"test"}
    captions = read_json("pdvc/test.json")
    assert {video: each["timestamps"] for video, each in captions.items()} == {"v_x": [[2, 9.6]], "v_y": [[0, 8]]}

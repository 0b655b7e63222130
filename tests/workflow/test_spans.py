"""Annotated spans of one's own videos and of a study: nothing else is decoded, and other segments are followed."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from stepline.availability import read_availability, read_manifest
from stepline.backbones.histogram import HistogramSpec
from stepline.features.bank import Bank
from stepline.io import read_json
from tests.workflow import test_own_videos as own_videos
from tests.workflow.test_own_videos import PAGE, RESULTS, configure, go

pytest.importorskip("av")
pytest.importorskip("pocketsphinx")
pytestmark = pytest.mark.slow


def rows(folder: Path) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(folder / "datasets/mine/media/a/scores.parquet").to_pylist()


def bank(folder: Path) -> Bank:
    [store] = folder.glob("features/histogram/*/mine/000")
    return Bank.open([store], HistogramSpec())


def test_only_annotated_spans_are_decoded_and_other_segments_are_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_videos, "TIMES", [Fraction(i, 10) for i in range(240)])
    for name, frames in {"a": 180, "b": 240, "c": 20}.items():
        own_videos.clip(tmp_path / f"videos/{name}.mp4", frames=frames)
    segments = tmp_path / "segments.csv"
    segments.write_text("video,start_s,end_s\na,14,15\na,2,4\nb,10,11\nb,20,22\n")
    mine = {"segments": "segments.csv"}
    configure(tmp_path, mine=mine, media={"spans": "annotated"}, shard_hours=10)
    go(tmp_path)
    found = read_availability(tmp_path / "datasets/mine/availability/000.json")
    spans = {"a": [[2.0, 4.0], [14.0, 15.0]], "b": [[10.0, 22.0]], "c": []}
    assert {video: record.spans for video, record in found.items()} == spans
    made = read_manifest(tmp_path / "datasets/mine/media/manifests/000.json")
    assert {video: (each["spans"], each["n_frames"]) for video, each in made.items()} == {
        "a": (spans["a"], 30),
        "b": (spans["b"], 120),
        "c": ([], 20),
    }
    assert [row["t_s"] for row in rows(tmp_path) if row["first"]] == [2, 14]
    features = bank(tmp_path)
    assert {video: len(features.rows[video]) for video in "abc"} == {"a": 15, "b": 60, "c": 10}
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.glob("datasets/mine/media/[bc]/*")}
    assert go(tmp_path) == []

    segments.write_text("video,start_s,end_s\na,14,16\nb,10,11\nb,20,22\n")
    changed = go(tmp_path)
    assert {"videos of mine, shard 000", "audio and content scores of mine, shard 000", *RESULTS} <= set(changed)
    assert [row["t_s"] for row in rows(tmp_path) if row["first"]] == [14]
    assert len(bank(tmp_path).rows["a"]) == 10
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert go(tmp_path) == []

    segments.write_text("video,start_s,end_s,label\na,14,16,\nb,10,11,\nb,20,22,\n")
    assert go(tmp_path) == [PAGE]
    segments.write_text("video,start_s,end_s,split\na,14,16,\nb,10,11,val\nb,20,22,val\n")
    assert {*go(tmp_path)} == {*RESULTS}

    configure(tmp_path, mine=mine, shard_hours=10)
    go(tmp_path)
    assert read_json(tmp_path / "datasets/mine/media/a/media.json")["n_frames"] == 180
    assert {video: len(part) for video, part in bank(tmp_path).items()} == {"a": 90, "b": 120, "c": 10}
    assert go(tmp_path) == []

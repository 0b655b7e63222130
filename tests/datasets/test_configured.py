from pathlib import Path

import pytest

from stepline import paths
from stepline.config import validate
from stepline.datasets.annotation.build import Labelled, annotation_item, write_release
from stepline.datasets.configured import dataset, is_study, study
from stepline.datasets.segments import read_segments
from stepline.datasets.studies import STUDIES
from stepline.errors import ConfigError, ReleaseError, StoreError
from stepline.fetch import fetch_release
from stepline.io import write_text


@pytest.fixture
def folder() -> Path:
    Path("clips").mkdir()
    for name in "ab":
        Path("clips", f"{name}.mp4").write_bytes(bytes(1000))
    return Path("clips")


CONFIG = validate({"datasets": {"mine": {"videos": "clips"}}})


def test_a_study_is_found_by_its_name() -> None:
    assert dataset(CONFIG, "demo") is STUDIES["demo"]


def test_an_unknown_name_is_one_line_with_the_known_ones() -> None:
    known = "spacewalk, demo, youcook2, tasty, openevent, hirest, htstep, crosstask, coin, mine"
    with pytest.raises(ConfigError, match=f"^dataset 'x' is not known; choose from {known}, or use --configfile"):
        dataset(CONFIG, "x")


def test_a_video_that_is_gone_from_the_folder_is_not_listed_and_its_segments_are_left_out(folder: Path) -> None:
    write_text(paths.shards("mine"), "video,shard\na,000\nb,000\n")
    (folder / "b.mp4").unlink()
    (folder.parent / "steps.csv").write_text("video,start_s,end_s\na,0,1\nb.mp4,0,1\n")
    found = dataset(validate({"datasets": {"mine": {"videos": "clips", "segments": "steps.csv"}}}), "mine")
    assert [video.id for video in found.videos()] == ["a"]
    assert list(read_segments("mine", "steps.csv", {"a"})) == ["a"]
    (folder.parent / "steps.csv").write_text("video,start_s,end_s\nc,0,1\n")
    with pytest.raises(ConfigError, match="'c' is not a video of mine"):
        read_segments("mine", "steps.csv", {"a"})


def test_a_video_of_a_study_that_is_gone_from_the_folder_stays_listed_until_it_is_forgotten(folder: Path) -> None:
    config = validate({"datasets": {"mine": {"videos": "clips", "study": {}}}})
    found = dataset(config, "mine")
    assert found.shards(10) == {"a": "000", "b": "000"}
    write_text(paths.shards("mine"), "video,shard\na,000\nb,000\n")
    (folder / "b.mp4").unlink()
    a, b = dataset(config, "mine").videos()
    assert (a.id, a.lost) == ("a", "")
    assert b.lost == "no longer in clips: put it back, or remove its line from datasets/mine/shards.csv to forget it"
    assert b.length_s == 0.0
    write_text(paths.shards("mine"), "video,shard\na,000\n")
    assert [video.id for video in dataset(config, "mine").videos()] == ["a"]


def test_a_damaged_list_of_shards_is_one_line(folder: Path) -> None:
    write_text(paths.shards("mine"), "video,shard\na,first\n")
    with pytest.raises(StoreError, match="shards.csv: must have the columns video,shard"):
        dataset(CONFIG, "mine").videos()


def test_segments_are_checked_at_the_door(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Path("segments.csv").write_text("video,start_s,end_s\nc,0,1\n")
    config = validate({"datasets": {"mine": {"videos": "clips", "segments": "segments.csv"}}})
    with pytest.raises(ConfigError, match=r"^segments.csv, line 2: 'c' is not a video of mine$"):
        dataset(config, "mine")
    Path("segments.csv").write_text("video,start_s,end_s\nb.mp4,0,1\n")
    assert dataset(config, "mine").segments == "segments.csv"
    monkeypatch.setenv("HOME", str(tmp_path))
    config["datasets"]["mine"]["segments"] = "~/segments.csv"
    assert dataset(config, "mine").segments == str(tmp_path / "segments.csv")


STUDY = {"study": {}, "samples": {"per_video": 7, "min_distance_s": 0.5}}
OWN = validate({"datasets": {"mine": {"videos": "clips"} | STUDY, "other": {"videos": "clips"}}})


def test_the_benchmark_runs_on_a_release_of_ones_own(folder: Path) -> None:
    assert (is_study(OWN, "mine"), is_study(OWN, "other"), is_study(OWN, "demo")) == (True, False, True)
    segments = [Labelled(0.0, 1.0, 1), Labelled(1.0, 2.0, 0)]
    step = {"index": 1, "caption": "Open", "transcript": "", "animation_start": 0.0, "animation_end": 1.0}
    release = write_release(
        Path("datasets/mine/release"),
        study="mine",
        fps=10.0,
        annotation={"b": annotation_item("b", segments, 10.0)},
        steps={"b": [{"index": 0, "caption": "Irrelevant", "transcript": "A break."}, step]},
        split={"train": [], "val": ["b"], "test": []},
    )
    found = study(OWN, "mine", "release")
    assert found.load("release") == release
    assert (found.name, found.fps, found.samples_per_video) == ("mine", {"release": 10.0}, 7)
    assert (found.min_distance_s, found.boundary_s) == (0.5, 15)
    assert [(video.id, video.split) for video in found.videos()] == [("a", None), ("b", "val")]
    assert fetch_release(found, "release") == Path("datasets/mine/release/release.json")
    assert found.load("release") == release
    with pytest.raises(ConfigError, match="^release 'v2' of mine is not known; choose from release$"):
        study(OWN, "mine", "v2")


def test_a_release_of_ones_own_that_is_not_built_is_one_line() -> None:
    with pytest.raises(ReleaseError, match=r"mine/release holds no release: run `stepline annotation build mine`$"):
        study(OWN, "mine")
    with pytest.raises(ConfigError, match="^study 'other' is not known; choose from spacewalk, demo$"):
        study(OWN, "other")
    assert study(OWN, "spacewalk", "v2") is STUDIES["spacewalk"]


def test_ones_own_has_no_released_transcripts() -> None:
    wrong = {"videos": "clips", "study": {"transcripts": "released"}}
    with pytest.raises(ConfigError, match=r"mine.study.transcripts: 'released' is not allowed; choose from asr$"):
        validate({"datasets": {"mine": wrong}})

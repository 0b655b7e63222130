from pathlib import Path

import pytest

from stepline import paths
from stepline.config import validate
from stepline.datasets.configured import dataset
from stepline.datasets.segments import read_segments
from stepline.datasets.studies import STUDIES
from stepline.errors import ConfigError, StoreError
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
    assert dataset(config, "mine").split_of == {}
    Path("segments.csv").write_text("video,start_s,end_s,label\nb.mp4,0,1,pour\n")
    assert dataset(config, "mine").split_of == {"b": "test"}
    monkeypatch.setenv("HOME", str(tmp_path))
    config["datasets"]["mine"]["segments"] = "~/segments.csv"
    assert dataset(config, "mine").segments == str(tmp_path / "segments.csv")

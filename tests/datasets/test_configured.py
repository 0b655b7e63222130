from pathlib import Path

import pytest

from stepline import paths
from stepline.config import validate
from stepline.datasets.configured import dataset
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
    with pytest.raises(ConfigError, match=r"^dataset 'x' is not known; choose from spacewalk, demo, mine, or add it"):
        dataset(CONFIG, "x")


def test_a_video_that_is_gone_from_the_folder_stays_listed_until_it_is_forgotten(folder: Path) -> None:
    found = dataset(CONFIG, "mine")
    assert found.shards(10) == {"a": "000", "b": "000"}
    write_text(paths.shards("mine"), "video,shard\na,000\nb,000\n")
    (folder / "b.mp4").unlink()
    a, b = dataset(CONFIG, "mine").videos()
    assert (a.id, a.lost) == ("a", "")
    assert b.lost == "no longer in clips: put it back, or remove its line from datasets/mine/shards.csv to forget it"
    assert b.length_s == 0.0
    write_text(paths.shards("mine"), "video,shard\na,000\n")
    assert [video.id for video in dataset(CONFIG, "mine").videos()] == ["a"]


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

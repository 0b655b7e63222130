import json
from pathlib import Path

import pytest

from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION, STUDIES, study
from stepline.errors import ConfigError, ReleaseError
from stepline.fetch import fetch_release
from stepline.io import write_text


def test_studies_are_found_by_name() -> None:
    assert study("spacewalk") is STUDIES["spacewalk"]
    assert study("demo", "demo").name == "demo"


@pytest.mark.parametrize(
    ("name", "release", "line"),
    [
        ("spacewlk", None, "study 'spacewlk' is not known; choose from spacewalk, demo"),
        ("../x", "v2", "study '../x' is not known; choose from spacewalk, demo"),
        ("spacewalk", "v3", "release 'v3' of spacewalk is not known; choose from v0, v1, v2"),
        ("spacewalk", "demo", "release 'demo' of spacewalk is not known; choose from v0, v1, v2"),
        ("spacewalk", "", "release '' of spacewalk is not known; choose from v0, v1, v2"),
    ],
)
def test_unknown_names_are_one_line(name: str, release: str | None, line: str) -> None:
    with pytest.raises(ConfigError) as error:
        study(name, release)
    assert str(error.value) == line


def test_releases_have_the_splits_that_were_released() -> None:
    spacewalk = study("spacewalk")
    assert spacewalk.splits("v0", STEP_RECOGNITION) == ("train", "val", "test")
    assert spacewalk.splits("v0", RETRIEVAL) == ("val", "test")
    assert spacewalk.splits("v1", RETRIEVAL) == ("train", "val", "test")
    assert spacewalk.tasks["v2"] == (STEP_RECOGNITION,)


def test_shards_that_were_written_down_stay() -> None:
    spacewalk = study("spacewalk")
    write_text("datasets/spacewalk/shards.csv", "video,shard\n10062019,007\n")
    of = spacewalk.shards(hours=1000)
    assert of["10062019"] == "007"
    assert len(of) == 18
    assert set(of.values()) == {"007"}


def test_a_recording_that_is_no_video_of_the_study_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mirror = tmp_path / "mirror" / "demo" / "release"
    mirror.mkdir(parents=True)
    segments = [
        {"video_start": at, "video_end": at + 1, "frame_start": 25 * at, "frame_end": 25 * at + 25, "label": at}
        for at in (0, 1)
    ]
    steps = [{"caption": "Irrelevant", "transcript": "nothing"}, {"caption": "Open.", "transcript": "we open"}]
    steps[1] |= {"animation_start": "0", "animation_end": "1"}
    for name, value in (
        ("annotation", {"stranger": segments}),
        ("steps", {"stranger": steps}),
        ("split", {"train": [], "val": [], "test": ["stranger"]}),
    ):
        (mirror / f"{name}.json").write_text(json.dumps(value))
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    demo = study("demo")
    fetch_release(demo, "demo")
    with pytest.raises(ReleaseError, match="^datasets/demo/demo: recording stranger is not a video of demo$"):
        demo.load("demo")

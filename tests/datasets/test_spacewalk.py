import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stepline.datasets import spacewalk
from stepline.datasets.schema import SPLITS, Release, Segment
from stepline.datasets.studies import STUDIES
from stepline.errors import ReleaseError
from stepline.fetch import fetch_release
from stepline.io import write_json
from tests.datasets.fetched import write_release

FOLDER = Path("datasets/spacewalk/v9")


def segment(start: float, end: float, label: int) -> dict[str, Any]:
    frames = {"frame_start": round(start * 10), "frame_end": round(end * 10)}
    return {"video_start": start, "video_end": end, "label": label, **frames}


IRRELEVANT = {"caption": "Irrelevant", "transcript": "none of them"}


def content() -> dict[str, Any]:
    """Return the files of a release of two recordings, with both spellings of the transcript."""
    step = {"caption": "Open.", "transcription": "we open", "animation_start": "3.5", "animation_end": 4}
    return {
        "data/annotation.json": {
            "a": [segment(0, 5, -1), segment(5, 7.5, 0), segment(7.5, 9, 1)],
            "b": [segment(0, 2, 1), segment(2, 3, 0)],
        },
        "data/steps.json": {"a": [{**IRRELEVANT}, step], "b": [{**IRRELEVANT}, step | {"transcript": "we close"}]},
        "tasks/split.json": {"train": ["b"], "val": [], "test": ["a"]},
    }


def write(files: dict[str, Any]) -> None:
    write_release(STUDIES["spacewalk"], "v9", files)


def load() -> Release:
    return spacewalk.load(FOLDER, study="spacewalk", name="v9", fps=10.0)


def test_a_release_is_read() -> None:
    write(content())
    release = load()
    assert (release.study, release.name, release.fps) == ("spacewalk", "v9", 10.0)
    assert release.splits == {"train": ("b",), "val": (), "test": ("a",)}
    a, b = release.recordings["a"], release.recordings["b"]
    assert (a.split, a.duration_s, a.n_steps) == ("test", 9, 1)
    assert a.segments[1] == Segment(start_s=5, end_s=7.5, start_frame=50, end_frame=75, label=0)
    assert a.steps[0].animation_s is None
    assert a.steps[1].animation_s == (3.5, 4.0)
    assert [step.transcript for step in a.steps] == ["none of them", "we open"]
    assert [step.transcript for step in b.steps] == ["none of them", "we close"]


Change = Callable[[dict[str, Any]], object]
SEGMENTS, STEPS, SPLIT = "data/annotation.json", "data/steps.json", "tasks/split.json"


def put(value: Any, path: str, *place: Any) -> Change:
    """Return what writes a value at a place of a file."""

    def change(files: dict[str, Any]) -> None:
        *outer, last = path, *place
        for key in outer:
            files = files[key]
        files[last] = value

    return change


def without(path: str, *place: Any) -> Change:
    """Return what leaves out a place of a file."""

    def change(files: dict[str, Any]) -> None:
        *outer, last = path, *place
        for key in outer:
            files = files[key]
        del files[last]

    return change


def alone(segments: list[Any], steps: list[Any]) -> Change:
    """Return what writes all segments and steps of a recording."""

    def change(files: dict[str, Any]) -> None:
        files[SEGMENTS]["a"], files[STEPS]["a"] = segments, steps

    return change


NO_MATCH, FORM = "v9: steps do not match the annotation of a: ", "v9 is not in Spacewalk-18's format: "


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (put(4 * [IRRELEVANT], STEPS, "a"), f"{NO_MATCH}data/steps.json has labels 0..3, .* uses 0, 1"),
        (without(STEPS, "a", 1), f"{NO_MATCH}data/steps.json has labels 0..0, .* uses 0, 1"),
        (put(7, SEGMENTS, "a", 2, "label"), f"{NO_MATCH}.* 0..1, data/annotation.json uses 0, 7"),
        (put(5.5, SEGMENTS, "a", 1, "video_start"), "v9: segments of a are not contiguous at 5.5 s"),
        (put(4.5, SEGMENTS, "a", 1, "video_start"), "v9: segments of a are not contiguous at 4.5 s"),
        (put(1, SEGMENTS, "b", 1, "video_end"), "v9: the segment of b at 2 s does not end after it starts"),
        (put(6, SEGMENTS, "a", 0, "video_start"), "v9: the segment of a at 6 s does not end after it starts"),
        (put(80, SEGMENTS, "a", 1, "frame_start"), "v9: the segment of a at 5 s does not end after it starts"),
        (put(50, SEGMENTS, "a", 1, "frame_end"), "v9: the segment of a at 5 s does not end after it starts"),
        (put(["../../x"], SPLIT, "test"), r"video id '\.\./\.\./x' is not allowed"),
        (put([10062019], SPLIT, "test"), f"{FORM}TypeError"),
        (without(SEGMENTS, "b"), "v9/data/annotation.json has no recording b, which tasks/split.json lists"),
        (without(STEPS, "b"), "v9/data/steps.json has no recording b, which tasks/split.json lists"),
        (without(SPLIT, "val"), f"{FORM}KeyError: 'val'"),
        (without(SEGMENTS, "a", 0, "label"), f"{FORM}KeyError: 'label'"),
        (without(STEPS, "a", 1, "transcription"), f"{FORM}KeyError: 'transcription'"),
        (put("three", STEPS, "a", 1, "animation_start"), f"{FORM}ValueError: .*'three'"),
        (alone([], []), "v9/data/annotation.json has no segment of a$"),
        (alone([segment(0, 9, -1)], []), "v9/data/steps.json has no step of a other than Irrelevant$"),
        (alone([segment(0, 9, 0)], [IRRELEVANT]), "v9/data/steps.json has no step of a other than Irrelevant$"),
        (without(STEPS, "a", 1, "animation_start"), "v9/data/steps.json: step 1 of a has no animation$"),
        (
            put(IRRELEVANT | {"animation_start": 1, "animation_end": 2}, STEPS, "a", 0),
            "v9/data/steps.json: step 0 of a is Irrelevant and must have no animation$",
        ),
        *(
            (put(end, STEPS, "a", 1, "animation_end"), "steps.json: the animation of step 1 of a does not end after it")
            for end in ("3.5", "nan")
        ),
        (put(["a", "b"], SPLIT), f"{FORM}TypeError"),
    ],
)
def test_an_inconsistent_release_is_one_line(damage: Change, line: str) -> None:
    files = content()
    damage(files)
    write(files)
    with pytest.raises(ReleaseError, match=line) as error:
        load()
    assert "\n" not in str(error.value)


def test_a_release_that_was_never_fetched_is_one_line() -> None:
    with pytest.raises(
        ReleaseError, match="^datasets/spacewalk/v9 holds no release: run `stepline fetch spacewalk/v9`"
    ):
        load()


def test_a_file_that_changed_since_is_one_line() -> None:
    write(content())
    path = FOLDER / "data/steps.json"
    path.write_bytes(path.read_bytes().replace(b"we open", b"we shut"))
    with pytest.raises(
        ReleaseError, match=f"^{path} has changed since it was fetched: run `stepline fetch spacewalk/v9`"
    ):
        load()
    path.unlink()
    with pytest.raises(ReleaseError, match=f"^{path} is absent: run `stepline fetch spacewalk/v9`"):
        load()


@pytest.mark.parametrize("listed", [{}, [], {"files": {}}, {"files": None}])
def test_a_release_json_that_lists_nothing_is_one_line(listed: Any) -> None:
    write(content())
    write_json(FOLDER / "release.json", listed)
    with pytest.raises(
        ReleaseError,
        match=r"^datasets/spacewalk/v9/release.json does not list data/annotation.json: "
        r"run `stepline fetch spacewalk/v9`$",
    ):
        load()


@pytest.mark.parametrize("bad", [b"{", b"", b"\xff"])
def test_a_file_that_is_no_json_is_one_line(bad: bytes) -> None:
    write(content())
    write(content() | {"data/steps.json": bad})
    with pytest.raises(ReleaseError, match="^datasets/spacewalk/v9/data/steps.json is not JSON: "):
        load()


def test_the_eighteen_recordings_last_156_hours() -> None:
    videos = spacewalk.videos()
    assert len({video.id for video in videos}) == 18
    assert sum(video.duration_s for video in videos) / 3600 == pytest.approx(156.0, abs=0.05)
    assert {split: sum(video.split == split for video in videos) for split in SPLITS} == {
        "train": 10,
        "val": 2,
        "test": 6,
    }
    assert len({video.url for video in videos}) == 18


def test_the_pins_are_whole() -> None:
    for release in spacewalk.FPS:
        files = spacewalk.release_files(release)
        paths = {file.path for file in files}
        assert len(paths) == len(files)
        assert {"data/annotation.json", "data/steps.json", "tasks/split.json"} <= paths
        assert {f"data/transcripts/{video.id}.csv" for video in spacewalk.videos()} <= paths
        for file in files:
            assert len(file.wanted.sha256) == 64
            assert file.wanted.size > 0
            commit = file.url.removeprefix(f"{spacewalk.REPOSITORY}/").removesuffix(f"/{file.path}")
            assert len(commit) == 40


def test_real_pins_are_those_of_the_public_repository(real_data: Path) -> None:
    with open(real_data / "spacewalk/SHA256SUMS_upstream.csv", newline="", encoding="utf-8") as file:
        published = {(row["commit"], row["path"]): (int(row["bytes"]), row["sha256"]) for row in csv.DictReader(file)}
    for release, commit in (("v0", "6b227ae"), ("v1", "b6ef8ca"), ("v2", "63c3968")):
        for file in spacewalk.release_files(release):
            # The transcripts never changed; they are listed once.
            listed = commit if "transcripts" not in file.path else "63c3968"
            assert published[listed, file.path] == (file.wanted.size, file.wanted.sha256), file


@pytest.fixture
def real(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Release]:
    """Fetch a release from the real data and load it."""
    monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))

    def fetch_and_load(name: str) -> Release:
        study = STUDIES["spacewalk"]
        fetch_release(study, name)
        return study.load(name)

    return fetch_and_load


@pytest.mark.parametrize("name", ["v0", "v1", "v2"])
def test_every_real_release_loads(real: Callable[[str], Release], name: str) -> None:
    release = real(name)
    assert len(release.recordings) == 18
    assert sum(recording.n_steps for recording in release.recordings.values()) == 455
    listed = {video.id: video for video in spacewalk.videos()}
    for video, recording in release.recordings.items():
        assert recording.split == listed[video].split
        assert recording.duration_s == pytest.approx(listed[video].duration_s, abs=0.1)
        assert all(step.animation_s for step in recording.steps[1:])
    if name == "v2":
        assert sum(len(recording.segments) for recording in release.recordings.values()) == 3793


def test_a_changed_real_file_is_noticed(real: Callable[[str], Release]) -> None:
    real("v2")
    path = Path("datasets/spacewalk/v2/data/annotation.json")
    annotation = json.loads(path.read_bytes())
    annotation["10062019"][0]["label"] = 3
    path.write_text(json.dumps(annotation))
    with pytest.raises(ReleaseError, match="has changed since it was fetched"):
        STUDIES["spacewalk"].load("v2")

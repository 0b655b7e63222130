import re
from collections.abc import Collection
from inspect import signature
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from stepline import shots
from stepline.availability import Record, read_manifest, write_availability, write_manifest
from stepline.config import validate
from stepline.errors import ConfigError
from stepline.io import sha256_file
from stepline.media.prepare import Media, prepare
from stepline.shots import Detection, detect
from tests.media.clips import CFR_25, CFR_2997, LIMITS, VFR, copy_from, make

av = pytest.importorskip("av")
scenedetect = pytest.importorskip("scenedetect")

SCENES = np.random.default_rng(0).integers(0, 256, (16, 15, 20, 3), np.uint8).repeat(12, 1).repeat(12, 2)
CUTS = (18, 24, 26, 28, 45, 60)
DETECTORS = {
    "content": scenedetect.ContentDetector,
    "adaptive": scenedetect.AdaptiveDetector,
    "threshold": scenedetect.ThresholdDetector,
    "hash": scenedetect.HashDetector,
    "histogram": scenedetect.HistogramDetector,
}
LENGTHS = (0, 0.2, 0.6)
LOW = {"content": 6, "adaptive": 1.5, "threshold": 60, "hash": 0.1, "histogram": 0.01}
"""Thresholds at which much is cut."""
CLIPS = ["2997.mp4", "2997.mkv", "25.ts", "variable.mp4", "edited.mp4"]


def still(index: int) -> np.ndarray:
    """Return a still scene; another from each of the CUTS on."""
    return SCENES[sum(index >= cut for cut in CUTS)]


def lively(index: int) -> np.ndarray:
    """Return scenes that drift, with a fade through black, one that starts black, and two flashes."""
    moved = np.roll(still(index), 3 * index, axis=1)
    if index in (8, 50, 51):
        return 255 - moved
    light = min(1.0, index / 4, abs(index - 37) / 6)
    return np.uint8(moved * light)


def prepared(path: Path, folder: Path) -> Path:
    """Score ``path`` as the video ``a``."""
    record = Record(video="a", status="present", path=str(path), sha256=sha256_file(path), duration_s=10)
    gone = Record(video="b", status="gone", reason="deleted")
    write_availability(folder / "availability.json", [record, gone])
    prepare(folder / "availability.json", Media(folder / "media"), folder / "media.json", limits=LIMITS)
    return path


@pytest.fixture(scope="module", params=CLIPS)
def clip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param)
    times = {"25": CFR_25, "2997": CFR_2997, "variable": VFR, "edited": CFR_25}[request.param.split(".")[0]]
    options = {"output_ts_offset": "100"} if request.param == "25.ts" else {}
    path = make(folder / request.param, times, picture=lively, options=options)
    return prepared(copy_from(path, folder / "cut.mp4", 0.3) if request.param == "edited.mp4" else path, folder)


@pytest.fixture(params=["25", "2997", "variable"])
def planted(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    times = {"25": CFR_25, "2997": CFR_2997, "variable": VFR}[request.param]
    return prepared(make(tmp_path / "a.mp4", times, picture=still), tmp_path)


def run(folder: Path, **options: Any) -> list[dict[str, Any]]:
    """Detect, and return the lines of the Parquet file."""
    given = {"detector": "content", "threshold": None, "min_shot_s": 0.6} | options
    detect(folder / "media.json", folder / "media", folder / "shots", folder / "shots.json", Detection(**given))
    return pq.read_table(folder / "shots/a.parquet").to_pylist()


def theirs(
    path: Path,
    target: Path,
    detector: str,
    threshold: float | None,
    min_shot_s: float,
    *,
    backend: str = "pyav",
    **options: Any,
) -> tuple[str, list[float]]:
    """Return PySceneDetect's CSV, and where its scenes start, in seconds."""
    given = () if threshold is None else (threshold,)
    manager = scenedetect.SceneManager()
    manager.add_detector(DETECTORS[detector](*given, min_scene_len=float(min_shot_s), **options))
    manager.detect_scenes(scenedetect.open_video(str(path), backend=backend))
    scenes = manager.get_scene_list(start_in_scene=True)
    scenedetect.write_scene_list(target, scenes, include_cut_list=False)
    return target.read_text(), [start.seconds for start, _ in scenes]


@pytest.mark.parametrize("detector", DETECTORS)
def test_shots_are_those_of_the_library(clip: Path, detector: str, tmp_path: Path) -> None:
    most = 0
    for threshold, min_shot_s in [(None, LENGTHS[-1]), *((LOW[detector], length) for length in LENGTHS)]:
        rows = run(clip.parent, detector=detector, threshold=threshold, min_shot_s=min_shot_s)
        text, starts = theirs(clip, tmp_path / "a.csv", detector, threshold, min_shot_s)
        assert (clip.parent / "shots/a.csv").read_text() == text
        # `threshold` cuts between frames where the rate varies, and even on the first frame: an empty scene.
        apart = 0 if detector != "threshold" else 0.36 if "variable" in clip.name else 0.02
        assert [row["start_s"] for row in rows] == pytest.approx(sorted(set(starts)), abs=apart, rel=0)
        most = max(most, len(rows))
    assert most > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "backend", "given"),
    [("animation1", "opencv", LOW.items()), ("spacewalk3", "pyav", [("content", None), ("content", LOW["content"])])],
)
def test_shots_of_real_videos_are_those_of_the_library(
    name: str, backend: str, given: Collection[tuple[str, float | None]], real_data: Path, tmp_path: Path
) -> None:
    path = prepared(real_data / f"spacewalk/clips/{name}.mp4", tmp_path)
    found = 0
    for detector, threshold in given:
        found += len(run(tmp_path, detector=detector, threshold=threshold))
        text, _ = theirs(path, tmp_path / "a.csv", detector, threshold, 0.6, backend=backend)
        assert (tmp_path / "shots/a.csv").read_text() == text, detector
    assert found > len(given)  # more than one shot of something


def test_the_options_of_the_adaptive_detector_are_the_librarys(clip: Path, tmp_path: Path) -> None:
    for options in ({"window_width": 5}, {"min_content_val": 2.0}, {"window_width": 1, "min_content_val": 40}):
        run(clip.parent, detector="adaptive", threshold=1.5, min_shot_s=0.2, **options)
        text, _ = theirs(clip, tmp_path / "a.csv", "adaptive", 1.5, 0.2, **options)
        assert (clip.parent / "shots/a.csv").read_text() == text


def test_defaults_are_the_librarys() -> None:
    for name, detector in DETECTORS.items():
        parameters = list(signature(detector).parameters.values())
        assert parameters[0].default == shots.THRESHOLDS[name]
    adaptive, own = signature(scenedetect.AdaptiveDetector).parameters, signature(Detection).parameters
    for name in ("window_width", "min_content_val"):
        assert own[name].default == adaptive[name].default


def test_shots_are_the_planted_scenes_and_cover_the_video(planted: Path, tmp_path: Path) -> None:
    rows = run(tmp_path, min_shot_s=0)
    assert [row["start_frame"] for row in rows] == [0, *CUTS]
    assert [row["shot"] for row in rows] == list(range(len(rows)))
    media = read_manifest(tmp_path / "media.json")["a"]
    assert (rows[0]["start_s"], rows[-1]["end_s"]) == (0, media["duration_s"])
    assert rows[-1]["end_frame"] == media["n_frames"]
    whole = run(tmp_path, min_shot_s=1)
    assert whole == run(tmp_path, min_shot_s=1.0), "the shortest shot is in seconds even as a whole number"
    assert len(whole) < len(rows)
    assert len(run(tmp_path, threshold=255)) == 1
    run(tmp_path, min_shot_s=0)
    for one, two in pairwise(rows):
        assert (one["end_s"], one["end_frame"]) == (two["start_s"], two["start_frame"])
    assert read_manifest(tmp_path / "shots.json") == {
        "a": {"status": "present", "reason": "", "n_shots": len(rows)},
        "b": {"status": "gone", "reason": "deleted"},
    }


def test_a_score_at_the_threshold_is_a_cut_and_one_below_is_none(planted: Path, tmp_path: Path) -> None:
    highest = max(pq.read_table(tmp_path / "media/a/scores.parquet")["content_val"].to_pylist())
    assert len(run(tmp_path, threshold=highest, min_shot_s=0)) > 1
    assert len(run(tmp_path, threshold=255)) == 1


def spans(folder: Path, lengths: list[int], detector: str) -> list[dict[str, Any]]:
    """Detect in frames of 25 a second that were decoded in spans, 10 s apart; all is still but for a cut in each."""
    score = shots.SCORES[detector]
    rows = []
    for span, length in enumerate(lengths):
        for i in range(length):
            frame = 250 * span + i
            stays = {"average_rgb": 90.0, "hist_diff": 1.0}.get(score, 0.0)
            cuts = {"average_rgb": 5.0, "hist_diff": 0.1, "hash_dist": 0.6}.get(score, 80.0)
            value = cuts if i == length - 5 else stays
            rows.append({"frame": frame, "pts": frame, "t_s": frame / 25, score: value, "first": i == 0})
    table = pa.Table.from_pylist(rows).replace_schema_metadata({"time_base": "1/25", "frame_rate": "25"})
    (folder / "media/a").mkdir(parents=True)
    pq.write_table(table, folder / "media/a/scores.parquet")
    media = {"status": "present", "reason": "", "fps": 25.0, "duration_s": rows[-1]["t_s"] + 0.04}
    write_manifest(folder / "media.json", {"a": media})
    return run(folder, detector=detector)


@pytest.mark.parametrize("detector", DETECTORS)
def test_a_gap_ends_a_shot_and_starts_detection_anew(detector: str, tmp_path: Path) -> None:
    cut = 15  # of a fade the middle, halves rounded to even
    rows = spans(tmp_path, [20, 8, 20], detector)
    assert [(row["start_frame"], row["end_frame"]) for row in rows] == [
        *((0, cut), (cut, 20)),
        (250, 258),  # its cut comes after 0.12 s: too early for a shot
        *((500, 500 + cut), (500 + cut, 520)),
    ]
    assert [row["end_s"] for row in rows] == pytest.approx([row["end_frame"] / 25 for row in rows])
    assert [line.split(",")[1] for line in (tmp_path / "shots/a.csv").read_text().splitlines()[1:]] == [
        str(row["start_frame"] + 1) for row in rows
    ]


def test_a_run_that_breaks_off_leaves_no_parquet_beside_another_csv(
    planted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tmp_path)
    before = (tmp_path / "shots/a.csv").read_text()

    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(OSError, match="no space"):
        run(tmp_path, min_shot_s=0)
    assert (tmp_path / "shots/a.csv").read_text() != before
    assert sorted(path.name for path in (tmp_path / "shots").iterdir()) == ["a.csv"]


def test_the_same_scores_give_the_same_bytes_and_a_video_that_failed_since_keeps_no_shots(
    planted: Path, tmp_path: Path
) -> None:
    run(tmp_path)
    before = [(tmp_path / f"shots/a.{kind}").read_bytes() for kind in ("csv", "parquet")]
    run(tmp_path)
    assert [(tmp_path / f"shots/a.{kind}").read_bytes() for kind in ("csv", "parquet")] == before
    write_manifest(tmp_path / "media.json", {"a": {"status": "failed", "reason": "no video stream"}})
    paths = (tmp_path / "media.json", tmp_path / "media", tmp_path / "shots", tmp_path / "shots.json")
    detect(*paths, Detection(**validate({"demo": {}})["shots"]))
    assert list((tmp_path / "shots").iterdir()) == []
    assert read_manifest(tmp_path / "shots.json")["a"]["reason"] == "no video stream"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"detector": "scenes"}, "shots.detector: 'scenes' is not allowed; choose from content, adaptive, threshold"),
        ({"detector": "hash", "threshold": 27}, "shots.threshold: 27 is not allowed; write a number of at most 1"),
        (
            {"detector": "threshold", "threshold": 12.5},
            "shots.threshold: 12.5 is not allowed; write a number that is a multiple of 1",
        ),
        ({"threshold": 256}, "shots.threshold: 256 is not allowed; write a number above 0 and of at most 255"),
        ({"threshold": 0}, "shots.threshold: 0 is not allowed; write a number above 0"),
        ({"window_width": 3}, "shots.window_width: 3 is not allowed; remove it, or set `detector: adaptive`"),
        ({"detector": "hash", "min_content_val": 3}, "shots.min_content_val: 3 is not allowed; remove it"),
        ({"detector": "adaptive", "window_width": 0}, "shots.window_width: 0 is not allowed; write a whole number"),
    ],
)
def test_an_impossible_choice_is_one_line(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        validate({"demo": {}, "shots": given})


def test_options_of_a_detector_pass_and_are_given_on_as_they_are() -> None:
    for detector in DETECTORS:
        filled = validate({"demo": {}, "shots": {"detector": detector, "threshold": 1}})["shots"]
        assert filled == {"detector": detector, "threshold": 1, "min_shot_s": 0.6}
        assert validate({"demo": {}, "shots": filled})["shots"] == filled
    adaptive = {"detector": "adaptive", "threshold": None, "min_shot_s": 0, "window_width": 3, "min_content_val": 1}
    assert validate({"demo": {}, "shots": adaptive})["shots"] == adaptive


def test_no_shot_reaches_into_a_gap(tmp_path: Path) -> None:
    t_s = [0.0, 0.4, 0.8, 3.0, 3.4, 3.8]
    columns = {
        "frame": range(6), "pts": [round(10 * time) for time in t_s], "t_s": t_s,
        "first": [True, False, False, True, False, False], "content_val": [0.0] * 6,
    }  # fmt: skip
    scores = pa.table(columns).replace_schema_metadata({"time_base": "1/10", "frame_rate": "2/1"})
    (tmp_path / "media/a").mkdir(parents=True)
    pq.write_table(scores, tmp_path / "media/a/scores.parquet")
    media = {"status": "present", "reason": "", "duration_s": 4.2, "gaps": [[1.2, 3.0, "damaged"], [4.2, 9.0, "cut"]]}
    write_manifest(tmp_path / "media.json", {"a": media})
    assert [(row["start_s"], row["end_s"]) for row in run(tmp_path)] == [(0.0, 1.2), (3.0, 4.2)]

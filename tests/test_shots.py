import csv
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from stepline.availability import Record, read_manifest, write_availability, write_manifest
from stepline.io import sha256_file
from stepline.media.prepare import prepare
from stepline.shots import detect
from tests.media.clips import CFR_25, CFR_2997, VFR, make

scenedetect = pytest.importorskip("scenedetect")

SCENES = np.random.default_rng(0).integers(0, 256, (16, 15, 20, 3), np.uint8).repeat(12, 1).repeat(12, 2)
CUTS = (18, 24, 26, 28, 45, 60)


def picture(index: int) -> np.ndarray:
    """Return a still scene; another from each of the CUTS on."""
    return SCENES[sum(index >= cut for cut in CUTS)]


@pytest.fixture(params=["25", "2997", "variable"])
def clip(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    times = {"25": CFR_25, "2997": CFR_2997, "variable": VFR}[request.param]
    path = make(tmp_path / "a.mp4", times, picture=picture)
    record = Record(video="a", status="present", path=str(path), sha256=sha256_file(path))
    write_availability(tmp_path / "availability.json", [record, Record(video="b", status="gone", reason="deleted")])
    prepare(tmp_path / "availability.json", tmp_path / "media", tmp_path / "media.json")
    return path


def shots(tmp_path: Path, threshold: float, min_shot_s: float) -> list[dict[str, str]]:
    detect(
        tmp_path / "media.json",
        tmp_path / "media",
        tmp_path / "shots",
        tmp_path / "shots.json",
        threshold=threshold,
        min_shot_s=min_shot_s,
    )
    with open(tmp_path / "shots/a.csv", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("min_shot_s", [0, 0.08, 0.2, 0.6, 1.0])
def test_cuts_are_those_of_the_content_detector(clip: Path, tmp_path: Path, min_shot_s: float) -> None:
    detector = scenedetect.ContentDetector(threshold=27, min_scene_len=float(min_shot_s))
    manager = scenedetect.SceneManager()
    manager.add_detector(detector)
    manager.detect_scenes(scenedetect.open_video(str(clip), backend="pyav"))
    wanted = [cut.seconds for _, cut in manager.get_scene_list(start_in_scene=True)][:-1]
    rows = shots(tmp_path, 27, min_shot_s)
    assert [float(row["end_s"]) for row in rows[:-1]] == pytest.approx(wanted, abs=1e-6)


def test_shots_are_the_planted_scenes_and_cover_the_video(clip: Path, tmp_path: Path) -> None:
    rows = shots(tmp_path, 27, 0)
    assert [int(row["start_frame"]) for row in rows] == [0, *CUTS]
    assert [int(row["shot"]) for row in rows] == list(range(len(rows)))
    media = read_manifest(tmp_path / "media.json")["a"]
    assert (float(rows[0]["start_s"]), float(rows[-1]["end_s"])) == (0, media["duration_s"])
    assert int(rows[-1]["end_frame"]) == media["n_frames"]
    for one, two in pairwise(rows):
        assert (one["end_s"], one["end_frame"]) == (two["start_s"], two["start_frame"])
    assert read_manifest(tmp_path / "shots.json") == {
        "a": {"status": "present", "reason": "", "n_shots": len(rows)},
        "b": {"status": "gone", "reason": "deleted"},
    }


def test_a_high_threshold_leaves_one_shot(clip: Path, tmp_path: Path) -> None:
    assert len(shots(tmp_path, 255, 0.6)) == 1


def test_no_present_video_gives_a_manifest_alone(tmp_path: Path) -> None:
    write_manifest(tmp_path / "media.json", {"b": {"status": "failed", "reason": "no video stream"}})
    paths = (tmp_path / "media.json", tmp_path / "media", tmp_path / "shots", tmp_path / "shots.json")
    detect(*paths, threshold=27, min_shot_s=0.6)
    assert read_manifest(tmp_path / "shots.json")["b"]["reason"] == "no video stream"


def test_a_video_that_failed_since_keeps_no_shots(tmp_path: Path) -> None:
    (tmp_path / "shots").mkdir()
    (tmp_path / "shots/b.csv").write_text("shot,start_frame,end_frame,start_s,end_s\n0,0,1,0,1\n")
    write_manifest(tmp_path / "media.json", {"b": {"status": "failed", "reason": "no video stream"}})
    paths = (tmp_path / "media.json", tmp_path / "media", tmp_path / "shots", tmp_path / "shots.json")
    detect(*paths, threshold=27, min_shot_s=0.6)
    assert not (tmp_path / "shots/b.csv").exists()

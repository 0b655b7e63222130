from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from stepline.media.decode import frames
from stepline.media.scores import FrameScores
from tests.media.clips import CFR_25, CFR_2997, VFR, make

pytest.importorskip("cv2")
scenedetect = pytest.importorskip("scenedetect")

NOISE = np.random.default_rng(0).integers(0, 256, (8, 23, 40, 3), np.uint8)
KEYS = [*FrameScores.COLUMNS[:5], "hash_dist [size=8 lowpass=2]", "hist_diff [bins=128]"]
FIRST = {"content_val": 0, "delta_hue": 0, "delta_sat": 0, "delta_lum": 0, "hash_dist": 0, "hist_diff": 1}


def theirs(path: Path, n: int, backend: str) -> list[list[float | None]]:
    """Return what PySceneDetect computes for the first ``n`` frames, where it does."""
    stats = scenedetect.StatsManager()
    manager = scenedetect.SceneManager(stats)
    for name in ("Content", "Threshold", "Hash", "Histogram"):
        manager.add_detector(getattr(scenedetect, f"{name}Detector")())
    manager.detect_scenes(scenedetect.open_video(str(path), backend=backend), duration=n)
    return [[row.get(key) for key in KEYS] for _, row in sorted(stats._frame_metrics.items())]


def ours(path: Path, n: int) -> list[list[float]]:
    scores = FrameScores()
    return [list(scores(frame.bgr())) for frame in islice(frames(path), n)]


def assert_equal(path: Path, n: int, backend: str) -> None:
    ((first, *rows), (wanted_first, *wanted)) = ours(path, n), theirs(path, n, backend)
    assert rows == wanted
    assert len(rows) > 1
    assert dict(zip(FrameScores.COLUMNS, first, strict=True)) == FIRST | {"average_rgb": wanted_first[4]}


def picture(width: int, height: int, index: int) -> np.ndarray:
    """Return one of a few scenes that flicker and drift; every 20th frame is black."""
    if index % 20 == 19:
        return np.zeros((height, width, 3), np.uint8)
    coarse = NOISE[index // 6 % len(NOISE)] // (1 + index % 2)
    rows = np.arange(height) * 23 // height
    columns = (np.arange(width) * 40 // width + index) % 40
    return coarse[rows][:, columns]


@pytest.mark.parametrize("times", [CFR_25, CFR_2997, VFR], ids=["25", "2997", "variable"])
@pytest.mark.parametrize("size", [(426, 240), (200, 120), (256, 100), (130, 402), (1280, 720)], ids=str)
def test_scores_are_those_of_the_library(size: tuple[int, int], times: list, tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", times[:45], picture=lambda i: picture(*size, i))
    assert_equal(path, 1000, "pyav")


@pytest.mark.parametrize("backend", ["opencv", "pyav"])
@pytest.mark.parametrize("name", ["animation1", "qa1_6min", "qa2_18min", "spacewalk2", "spacewalk5"])
def test_scores_of_real_videos_are_those_of_the_library(name: str, backend: str, real_data: Path) -> None:
    assert_equal(real_data / f"spacewalk/clips/{name}.mp4", 60, backend)


def test_a_new_object_knows_nothing_of_the_last_video() -> None:
    one, other = picture(320, 180, 0), picture(320, 180, 7)
    scores = FrameScores()
    first = scores(one)
    assert scores(other)[0] > 27
    assert FrameScores()(one) == first
    assert FrameScores()(other)[0] == 0

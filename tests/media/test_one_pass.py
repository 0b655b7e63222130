import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from stepline.media import one_pass as stage
from stepline.media.decode import frames
from stepline.media.one_pass import one_pass
from stepline.media.scores import FrameScores
from tests.conftest import ROOT
from tests.media.clips import CFR_25, DECODER, VFR, make

pytest.importorskip("cv2")


def test_scores_are_those_of_the_frames_one_after_the_other(tmp_path: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (9, 64, 320, 3), np.uint8)
    path = make(tmp_path / "a.mp4", VFR, picture=lambda i: noise[i // 8])
    found = one_pass(path, tmp_path, decoder=DECODER, duration_s=0)
    scores, decoded = FrameScores(), list(frames(path))
    rows = pq.read_table(tmp_path / "scores.parquet").to_pylist()
    assert found["n_frames"] == len(rows) == len(VFR)
    for number, (row, frame) in enumerate(zip(rows, decoded, strict=True)):
        expected = dict(zip(FrameScores.COLUMNS, scores(frame.bgr()), strict=True))
        assert row == {"frame": number, "pts": frame.pts, "t_s": frame.t_s, "first": number == 0} | expected
    assert found["duration_s"] == pytest.approx(decoded[-1].end_s, abs=1e-6)


def test_the_same_video_gives_the_same_bytes(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", CFR_25, audio=np.zeros(48_000, np.int16))
    made = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        one_pass(path, tmp_path / name, decoder=DECODER, duration_s=0)
        made.append({file.name: file.read_bytes() for file in (tmp_path / name).iterdir()})
    assert made[0] == made[1]
    assert sorted(made[0]) == ["audio.wav", "scores.parquet"]


def test_scores_come_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make(tmp_path / "a.mp4", CFR_25)
    [whole, _] = stage.decode(path, tmp_path / "a.wav", (), True)
    monkeypatch.setattr(stage, "ROWS", 20)
    *batches, _ = stage.decode(path, tmp_path / "a.wav", (), True)
    assert [len(batch.rows) for batch in batches] == [20, 20, 20, 15]
    assert [row for batch in batches for row in batch.rows] == whole.rows


def test_the_worker_imports_neither_torch_nor_what_it_does_not_need() -> None:
    code = "import sys, stepline.media.one_pass; sys.exit(bool({'torch', 'pyarrow', 'scipy'} & sys.modules.keys()))"
    subprocess.run([sys.executable, "-c", code], check=True)


AFTER_THREADS = """
import sys
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from stepline.media.one_pass import one_pass
from stepline.media.process import Decoder
from tests.media.clips import LIMITS

cv2.setNumThreads(2)
cv2.cvtColor(np.zeros((2000, 2000, 3), np.uint8), cv2.COLOR_BGR2HSV)
path = Path(sys.argv[1])
with Decoder(replace(LIMITS, least_s=20)) as decoder:
    assert one_pass(path, path.parent, decoder=decoder, duration_s=0)["n_frames"] == 75
"""


def test_a_process_with_threads_of_opencv_can_be_copied(tmp_path: Path) -> None:
    path = make(tmp_path / "a.mp4", CFR_25)
    subprocess.run([sys.executable, "-c", AFTER_THREADS, path], check=True, cwd=ROOT)

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("av")

from stepline.media.timeline import scan


def test_a_repeated_clip_has_all_its_frames_at_one_rate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERF_SMALL", "1")
    clips = import_module("gpu_clips")
    clips.write(tmp_path)
    for height in clips.HEIGHTS:
        clips.repeated(tmp_path / f"{height}p.mp4", tmp_path / "whole.mp4", 3)
        timeline = scan(tmp_path / "whole.mp4")
        assert timeline.end_s == 3 * clips.SECONDS
        np.testing.assert_allclose(timeline.t_s, np.arange(3 * 30) / 30, atol=1e-6)

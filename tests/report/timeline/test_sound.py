from pathlib import Path

import numpy as np
import pytest

from stepline.report.timeline import sound
from stepline.report.timeline.sound import peaks
from tests.asr.wav import write_wav


def test_each_hundredth_of_a_second_has_its_largest_amplitude(tmp_path: Path) -> None:
    samples = np.zeros(16_000 // 10 + 3, np.int16)
    samples[5], samples[170], samples[-1] = 1000, -2000, 500
    found = peaks(write_wav(tmp_path / "a.wav", samples))
    assert found is not None
    assert found.hop_s == 0.01
    assert [*found.values] == [128, 255, *[0] * 8, 64]


def test_a_long_sound_has_fewer_peaks_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sound, "BARS", 10)
    found = peaks(write_wav(tmp_path / "a.wav", np.full(32_000, -32768, np.int16)))
    assert found is not None
    assert (found.hop_s, [*found.values]) == (0.2, [255] * 10)


def test_silence_and_nothing(tmp_path: Path) -> None:
    assert peaks(tmp_path / "a.wav") is None
    assert peaks(write_wav(tmp_path / "empty.wav", np.zeros(0, np.int16))) is None
    silent = peaks(write_wav(tmp_path / "silent.wav", np.zeros(320, np.int16)))
    assert silent is not None
    assert [*silent.values] == [0, 0]

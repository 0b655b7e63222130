from pathlib import Path

import numpy as np
import pytest

from stepline.asr.chunks import chunks, quietest
from stepline.media.audio import RATE
from tests.asr.wav import write_wav


def noise(seconds: float) -> np.ndarray:
    return np.random.default_rng(0).integers(-9000, 9000, round(seconds * RATE), np.int16)


def test_long_audio_is_cut_in_its_quiet_places_and_loses_nothing(tmp_path: Path) -> None:
    samples = noise(1300)
    quiet = (580.0, 1171.5)
    for second in quiet:
        samples[round((second - 0.2) * RATE) : round((second + 0.2) * RATE)] = 3
    samples[300 * RATE : 301 * RATE] = 0
    pieces = list(chunks(write_wav(tmp_path / "a.wav", samples)))
    assert [start for start, _ in pieces] == [0, *(round(second * RATE) for second in quiet)]
    assert all(len(piece) <= 600 * RATE for _, piece in pieces)
    assert np.array_equal(np.concatenate([piece for _, piece in pieces]), samples)


@pytest.mark.parametrize("seconds", [0, 0.1, 600])
def test_short_audio_is_one_chunk(tmp_path: Path, seconds: float) -> None:
    pieces = list(chunks(write_wav(tmp_path / "a.wav", noise(seconds))))
    assert [(start, len(piece)) for start, piece in pieces] == ([(0, round(seconds * RATE))] if seconds else [])


def test_the_first_of_equally_quiet_places_is_taken() -> None:
    assert quietest(np.zeros(RATE, np.int16)) == RATE // 5

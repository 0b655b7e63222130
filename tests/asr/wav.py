"""Recordings for tests."""

import wave
from pathlib import Path

import numpy as np

from stepline.media.audio import RATE


def write_wav(path: Path, samples: np.ndarray) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes(samples.astype(np.int16).tobytes())
    return path

"""The waveform of a video's sound."""

import wave
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BARS = 240_000
"""At most so many peaks of a video: 33 a second of two hours."""
FINEST = 100
"""Peaks of a second, at most."""
AT_ONCE = 4096
"""Peaks whose samples are in memory together."""


@dataclass(frozen=True)
class Peaks:
    """The largest amplitude in each ``hop_s`` seconds, 0 to 255, where 255 is the loudest of all."""

    hop_s: float
    values: bytes


def peaks(wav: Path) -> Peaks | None:
    """Return the peaks of a mono file of 16-bit samples; None where it is absent or empty."""
    if not wav.exists():
        return None
    with wave.open(str(wav)) as file:
        per = max(file.getframerate() // FINEST, -(-file.getnframes() // BARS))
        found = []
        while content := file.readframes(per * AT_ONCE):
            samples = np.abs(np.frombuffer(content, np.int16).astype(np.int32))
            found.append(np.maximum.reduceat(samples, np.arange(0, len(samples), per)))
        hop_s = per / file.getframerate()
    if not found:
        return None
    loud = np.concatenate(found)
    return Peaks(hop_s, np.rint(255 * loud / max(int(loud.max()), 1)).astype(np.uint8).tobytes())

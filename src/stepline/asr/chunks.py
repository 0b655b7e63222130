"""Splitting long audio into chunks at its quietest points."""

import wave
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from stepline.media.audio import RATE

LONGEST = 600 * RATE
SEARCHED = 30 * RATE
QUIET = RATE * 2 // 5


def quietest(samples: NDArray[np.int16]) -> int:
    """Return the middle of the 0.4 s with the least energy, as a sample index; the first of equal ones."""
    energy = np.concatenate([[0], np.cumsum(samples.astype(np.int64) ** 2)])
    return int(np.argmin(energy[QUIET:] - energy[:-QUIET])) + QUIET // 2


def chunks(wav: Path) -> Iterator[tuple[int, NDArray[np.int16]]]:
    """Yield the 16 kHz mono file in chunks of at most 600 s: the first sample's index, and the samples.

    A chunk ends in the quietest 0.4 s of the last 30 s before this limit. Chunks neither overlap nor leave gaps.
    """
    with wave.open(str(wav)) as file:
        start, end = 0, file.getnframes()
        while start < end:
            file.setpos(start)
            samples = np.frombuffer(file.readframes(LONGEST), np.int16)
            if start + len(samples) < end:
                samples = samples[: LONGEST - SEARCHED + quietest(samples[-SEARCHED:])]
            yield start, samples
            start += len(samples)

"""TW-FINCH of a recording of nine hours, compared with one matrix product of all pairs of its rows."""

import resource

import numpy as np
from measure import show

from stepline.models.tw_finch import tw_finch

ROWS, DIMENSION, SEGMENTS, BLOCK = 34_000, 768, 75, 1024


def walk() -> np.ndarray:
    """Return (n, D) features of scenes of about a minute, which recur nearby in time, as in a film."""
    rng = np.random.default_rng(0)
    scenes = 0.2 * np.cumsum(rng.standard_normal((ROWS // 60, DIMENSION), np.float32), axis=0)
    noise = 0.3 * rng.standard_normal((ROWS, DIMENSION), np.float32)
    features: np.ndarray = scenes[np.sort(rng.integers(0, len(scenes), ROWS))] + noise
    return features.astype(np.float16)


def product(features: np.ndarray) -> None:
    """Multiply all pairs of rows in float64, block by block, without storing the result."""
    rows = features.astype(np.float64)
    for first in range(0, ROWS, BLOCK):
        for second in range(0, ROWS, BLOCK):
            rows[first : first + BLOCK] @ rows[second : second + BLOCK].T


def peak_mib() -> float:
    """Return the peak memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    """Print the peak memory, then the table."""
    features = walk()
    tw_finch(features[:100], 2)
    before = peak_mib()
    labels = tw_finch(features, SEGMENTS)
    print(f"{labels.max() + 1} segments: at most {peak_mib() - before:.0f} MiB above the program and the features")
    calls = {"tw_finch": lambda: tw_finch(features, SEGMENTS), "a product": lambda: product(features)}
    show(f"{ROWS} x {DIMENSION} rows, {SEGMENTS} segments", "a product", calls, repeats=1)


if __name__ == "__main__":
    main()

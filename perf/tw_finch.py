"""TW-FINCH of a recording of nine hours, compared with one matrix product of all pairs of its rows."""

import resource

import numpy as np
import psutil
from measure import show, sized

from stepline.models.tw_finch import tw_finch

ROWS, DIMENSION, SEGMENTS, BLOCK = sized(34_000, small=3000), 768, sized(75, small=10), 1024


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


def main() -> None:
    """Print the peak memory, then the table."""
    features = walk()
    tw_finch(features[:100], 2)
    before_mib = psutil.Process().memory_info().rss / 2**20
    labels = tw_finch(features, SEGMENTS)
    above_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before_mib
    print(f"{labels.max() + 1} segments: at most {above_mib:.0f} MiB above the program and the features")
    calls = {"tw_finch": lambda: tw_finch(features, SEGMENTS), "a product": lambda: product(features)}
    show(f"{ROWS} x {DIMENSION} rows, {SEGMENTS} segments", "a product", calls, repeats=1)


if __name__ == "__main__":
    main()

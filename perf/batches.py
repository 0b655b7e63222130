"""Rows of clips in batches of powers of two, compared with one zero-padded batch, in steps of float16."""

import numpy as np
import torch
from random_weights import SIDE, load, random_presets

from stepline.features.frames import split
from stepline.features.network import Network

NAMES = ("s3d-htstep", "timesformer-htstep", "egovlp-spacewalk", "eva_clip-hirest", "internvideo-htstep")
CLIPS, MOST = 7, 8


def main() -> None:
    """Print the table. One thread, random weights. The deviation is that of the same value of different clips."""
    torch.set_num_threads(1)
    known = random_presets()
    print(f"{CLIPS} clips as batches of {split(CLIPS, MOST)}, compared with one of {MOST}")
    print(f"{'':24}{'steps':>6}{'values':>10}{'deviation':>12}")
    for name in NAMES:
        spec = known[name]
        network = Network(spec, load(spec, {}), "cpu", MOST)
        size = (CLIPS, spec.num_frames, SIDE, SIDE, 3)
        clips = np.random.default_rng(0).integers(0, 256, size, np.uint8)
        filled = np.concatenate([clips, np.zeros((MOST - CLIPS, *size[1:]), np.uint8)])
        before = network(filled, np.arange(MOST)[:, None].repeat(size[1], 1) < CLIPS)[:CLIPS]
        parts = np.split(clips, np.cumsum(split(CLIPS, MOST))[:-1])
        after = np.concatenate([network(part, np.ones(part.shape[:2], bool)) for part in parts])
        steps = np.abs(ordered(before) - ordered(after))
        print(f"{name:24}{steps.max():6}{(steps > 0).mean():10.2%}{before.std(axis=0).mean():12.2g}", flush=True)


def ordered(rows: np.ndarray) -> np.ndarray:
    """Return the position of each value in the ordered float16 values."""
    bits = rows.astype(np.float16).view(np.int16).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


if __name__ == "__main__":
    main()

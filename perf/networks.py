"""CPU seconds per frame of networks: the initial rates for the forecasts of `stepline plan`."""

import time

import numpy as np
import torch
from random_weights import SIDE, load, random_presets

from stepline.features.network import Network

NAMES = ("s3d-htstep", "timesformer-htstep", "egovlp-spacewalk")


def main() -> None:
    """Print the table, in seconds. One thread, random weights, one clip at a time, the faster of two runs."""
    torch.set_num_threads(1)
    known = random_presets()
    print(f"{'':24}{'clip':>8}{'frame':>8}")
    for name in NAMES:
        spec = known[name]
        network = Network(spec, load(spec, {}), "cpu", 1)
        clip = np.zeros((1, spec.num_frames, SIDE, SIDE, 3), np.uint8)
        spent_s = min(_spent_s(network, clip) for _ in range(2))
        print(f"{name:24}{spent_s:8.2f}{spent_s / spec.num_frames:8.3f}", flush=True)


def _spent_s(network: Network, clip: np.ndarray) -> float:
    start_s = time.process_time()
    network(clip, np.ones(clip.shape[:2], bool))
    return time.process_time() - start_s


if __name__ == "__main__":
    main()

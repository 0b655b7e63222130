"""The features stage on a device: its rate as a share of the slower of decoding and network; random weights.

All networks in bfloat16 on 720p come first, with any number of processes; then the rest with a process per core.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import TYPE_CHECKING

from measure import sized

if TYPE_CHECKING:
    from stepline.spec import ClipSpec

CORES = sized(len(os.sched_getaffinity(0)), small=2)
COUNTS = [CORES, *(n for n in (1, 2, 4, 8, 16) if n < CORES)]
COMPUTE = "bfloat16", "float32"
TIMES = sized({"bfloat16": 8, "float32": 2}, small={"bfloat16": 1, "float32": 1})
"""Repetitions of the clip in a video."""
LEAST_S = sized(1, small=0.01)
"""How long a network is measured."""


def main() -> None:
    """Print the table."""
    # Imported here, because the decoding processes import this file too.
    from gpu_clips import HEIGHTS, SECONDS, videos
    from random_weights import random_presets
    from stage import FOUR, extracted
    from updates import DEVICE

    from stepline.errors import SteplineError

    presets = random_presets()
    print(f"{CORES} cores; a video for each decoding process; video seconds per second")
    heads = "decode", "network", "stage", "share"
    print(f"{'':8}{'processes':>10}{'networks':>22}{'':>10}{''.join(f'{each:>10}' for each in heads)}")
    with TemporaryDirectory() as name:
        folder = Path(name)
        extracted(videos(folder, 720, 1, times=1), folder, [presets[each] for each in FOUR])

        @cache
        def network(preset: str, compute: str) -> float:
            return network_rate(replace(presets[preset], compute=compute), DEVICE)

        @cache
        def decode(height: int, n: int, chosen: tuple[str, ...]) -> float:
            some = videos(folder, height, n, times=TIMES["bfloat16"])
            return decode_rate(some, [presets[each] for each in chosen], n)

        def figures(n: int, compute: str, height: int, chosen: tuple[str, ...]) -> str:
            model = 1 / sum(1 / network(each, compute) for each in chosen)
            decoded, some = decode(height, n, chosen), videos(folder, height, n, times=TIMES[compute])
            start = perf_counter()
            extracted(some, folder, [replace(presets[each], compute=compute) for each in chosen], decoders=n)
            stage = n * TIMES[compute] * SECONDS / (perf_counter() - start)
            return f"{decoded:10.1f}{model:10.1f}{stage:10.1f}{stage / min(decoded, model):10.2f}"

        first, *others = product(COMPUTE, HEIGHTS, (FOUR, *sized([(each,) for each in FOUR], small=[])))
        for n, (compute, height, chosen) in [*product(COUNTS, [first]), *product(COUNTS, others)]:
            what = chosen[0] if len(chosen) == 1 else "all four"
            try:
                found = figures(n, compute, height, chosen)
            except SteplineError as error:
                found = f"  {error}"
            print(f"{height:>7}p{n:10}{what:>22}{compute:>10}{found}", flush=True)


def network_rate(spec: "ClipSpec", device: str) -> float:
    """Return the seconds of video whose clips a network computes per second, in full batches of random pictures."""
    import numpy as np
    from random_weights import SIDE, load

    from stepline.features.network import Network

    network = Network(spec, load(spec, {}), device, sized(None, small=2))
    size = network.batch_size, spec.num_frames, SIDE, SIDE, 3
    clips = np.random.default_rng(0).integers(256, size=size, dtype=np.uint8)
    shown = np.ones(size[:2], bool)
    network(clips, shown)
    start, passes = perf_counter(), 0
    while perf_counter() - start < LEAST_S:
        network(clips, shown)
        passes += 1
    return passes * size[0] * spec.hop / spec.fps / (perf_counter() - start)


def decode_rate(videos: Sequence[Path], specs: Sequence["ClipSpec"], n: int) -> float:
    """Return the seconds of video whose clips ``n`` processes decode and send per second."""
    from stage import LIMITS, record

    from stepline.features.decoding import Job, decoded, decoders
    from stepline.features.frames import Request

    records = [record(video) for video in videos]
    jobs = [Job(each, [Request(spec=spec, batch_size=16) for spec in specs]) for each in records]
    with decoders(LIMITS, n) as processes:
        start = perf_counter()
        for _ in decoded(jobs, processes):
            pass
        return sum(each.duration_s for each in records) / (perf_counter() - start)


if __name__ == "__main__":
    main()

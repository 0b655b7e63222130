"""Two jobs on one GPU compared with one job that has all cores; random weights."""

import multiprocessing
import os
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from measure import sized

CORES = sized(len(os.sched_getaffinity(0)), small=2)
TIMES = sized(8, small=1)
LIMIT_S = 60
"""How long a job is awaited."""


def job(folder: Path, number: int, jobs: int, ready: Any, ended: Any) -> None:
    """Run one of ``jobs`` on its share of the videos and of the cores, once all are ready."""
    from dataclasses import replace

    from gpu_clips import videos
    from random_weights import random_presets
    from stage import FOUR, extracted

    own = folder / f"{jobs}-{number}"
    own.mkdir()
    some = videos(folder, 720, CORES, times=TIMES)[number::jobs]
    specs = [replace(random_presets()[each], compute="bfloat16") for each in FOUR]
    extracted(some[:1], own, specs, jobs_per_gpu=3)
    ready.wait()
    extracted(some, own, specs, jobs_per_gpu=3, decoders=len(some))
    ended.wait()


def main() -> None:
    """Print the table. All jobs start at once, because their start takes longest."""
    from gpu_clips import SECONDS, videos

    print(f"all four networks, bfloat16, {CORES} videos of {TIMES * SECONDS} s, 720p, {CORES} decoding processes")
    print(f"{'':20}{'s':>10}{'video s per s':>16}")
    context = multiprocessing.get_context("spawn")
    with TemporaryDirectory() as name:
        folder = Path(name)
        videos(folder, 720, CORES, times=TIMES)
        barriers = {jobs: [context.Barrier(jobs + 1, timeout=LIMIT_S) for _ in range(2)] for jobs in (1, 2)}
        shares = [(number, jobs) for jobs in barriers for number in range(jobs)]
        started = [context.Process(target=job, args=(folder, n, jobs, *barriers[jobs])) for n, jobs in shares]
        for each in started:
            each.start()
        for jobs, (ready, ended) in barriers.items():
            ready.wait()
            start = perf_counter()
            ended.wait()
            spent_s = perf_counter() - start
            rate = CORES * TIMES * SECONDS / spent_s
            print(f"{f'{jobs} job' + 's' * (jobs > 1):20}{spent_s:10.2f}{rate:16.1f}", flush=True)
        for each in started:
            each.join()


if __name__ == "__main__":
    main()

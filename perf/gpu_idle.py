"""Where the GPU is idle while four networks run on videos, and its longest kernels; random weights."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from measure import sized

CORES = sized(len(os.sched_getaffinity(0)), small=2)
TIMES = sized(3, small=1)
SHOWN = 12
"""The number of kernels that are listed."""


class Spent:
    """The seconds of the main thread, by what it does."""

    def __init__(self) -> None:
        self.by: Counter[str] = Counter()

    def timed(self, what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that adds its time to ``what``."""

        def timed(*arguments: Any, **options: Any) -> Any:
            start = perf_counter()
            try:
                return call(*arguments, **options)
            finally:
                self.by[what] += perf_counter() - start

        return timed

    def awaited(self, call: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        """Return the generator function with the time that its caller waits for items."""

        def awaited(*arguments: Any, **options: Any) -> Iterator[Any]:
            items = call(*arguments, **options)
            following = self.timed("waits for frames", lambda: next(items, None))
            try:
                while (item := following()) is not None:
                    yield item
            finally:
                items.close()

        return awaited


def main() -> None:
    """Print the tables."""
    # Imported here, because the decoding processes import this file too.
    from dataclasses import replace

    from gpu_clips import SECONDS, videos
    from kernels import busy_s, kernels
    from random_weights import random_presets
    from stage import FOUR, extracted

    from stepline.features import extract
    from stepline.features.cache import FeatureCache
    from stepline.features.network import Network

    specs = [replace(random_presets()[each], compute="bfloat16") for each in FOUR]
    with TemporaryDirectory() as name:
        folder = Path(name)
        some = videos(folder, 720, CORES, times=TIMES)
        extracted(some[:1], folder, specs)
        spent = Spent()
        extract.decoded = spent.awaited(extract.decoded)
        FeatureCache.add = spent.timed("writes rows", FeatureCache.add)
        Network._normalised = spent.timed("sends and normalises pictures", Network._normalised)
        Network._rows = spent.timed("runs networks", Network._rows)
        found = kernels(spent.timed("all", lambda: extracted(some, folder, specs, decoders=CORES)))
    total_s = spent.by.pop("all")
    spent.by["runs networks"] -= spent.by["sends and normalises pictures"]
    spent.by["everything else: start and commit"] = total_s - spent.by.total()
    print(f"all four networks, bfloat16, {CORES} videos of {TIMES * SECONDS} s, 720p, {CORES} decoding processes")
    print(f"{'':60}{'s':>10}{'share':>10}")
    for what, seconds in [("the GPU is busy", busy_s(found)), *spent.by.most_common()]:
        print(f"{what:60}{seconds:10.2f}{seconds / total_s:10.0%}", flush=True)
    by_name: Counter[str] = Counter()
    for kernel in found:
        by_name[kernel.name] += kernel.end_s - kernel.start_s
    print(f"\n{len(found)} kernels and copies; the longest together:")
    for kernel_name, seconds in by_name.most_common(SHOWN):
        print(f"{kernel_name[:100]:100}{seconds:10.2f}", flush=True)


if __name__ == "__main__":
    main()

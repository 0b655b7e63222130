"""A bank on object storage, compared with plain downloads of the same bytes. It needs a service.

AWS_ENDPOINT_URL names the service. The bank is written below the given URL, and is not removed.
"""

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import obstore
from measure import sized

from stepline import paths
from stepline.features import objects, store
from stepline.features.bank import Bank
from stepline.paths import located
from stepline.spec import FrameSpec

VIDEOS, SHARDS, ROWS, DIMENSION = sized(100, small=3), 4, sized(600, small=50), 1024


@dataclass(frozen=True, kw_only=True)
class Synthetic(FrameSpec):
    """The stored data: random numbers."""

    dtype: str = "float16"


SPEC = Synthetic(name="perf", label="object-store", revision=1, fps=1)


def elapsed(calls: dict[str, Callable[[], object]], repeats: int = 5) -> None:
    """Print the median wall time of each call, and its ratio to the first."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(sized(repeats, small=1) + 1):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            if repeat:
                times[name].append(time.perf_counter() - start)
    first = median(next(iter(times.values())))
    print(f"{'':60}{'s':>10}{'ratio':>10}")
    for name, all_s in times.items():
        print(f"{name:60}{median(all_s):10.3f}{median(all_s) / first:10.2f}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url", metavar="s3://BUCKET/PREFIX")
    url = parser.parse_args().url
    rng = np.random.default_rng(0)
    part = rng.standard_normal((ROWS, DIMENSION), np.float32).astype(np.float16)
    places = [located(paths.features("perf", f"{shard:03d}", SPEC), url) for shard in range(SHARDS)]
    for shard, place in enumerate(places):
        store.write(place, SPEC, {f"{shard}{i:04d}": np.roll(part, i) for i in range(VIDEOS)}, 1)
    whole = SHARDS * VIDEOS * part.nbytes
    print(f"{SHARDS} stores of {VIDEOS} videos, {whole / 1e6:.0f} MB")

    def plain() -> None:
        for place in places:
            bucket, path = objects.split(f"{place}/{objects.ARRAY}")
            with open("download", "wb") as file:
                file.writelines(obstore.get(bucket, path).stream(min_chunk_size=objects.PIECE))
        Path("download").unlink()

    def fetched() -> None:
        Bank.open(places, SPEC).fetch()

    def each() -> None:
        bank = Bank.open(places, SPEC)
        for video in bank:
            bank[video]

    elapsed(
        {"plain downloads, one after the other": plain, "Bank.fetch": fetched, "bank[video], one after the other": each}
    )


if __name__ == "__main__":
    main()

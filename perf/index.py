"""A question to ten million moments, compared with all rows and by an index, with the index's recall.

The lower bound reads the bytes of all rows once, with one thread, as the exact comparison does. It needs 12 GB on the
disk and in memory. The printed memory includes mapped files, each mapping of which counts.
"""

import argparse
import json
import os
import resource
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from measure import cpu_s, sized
from moments import video
from numpy.typing import NDArray

from stepline import paths
from stepline.config import load
from stepline.features import store
from stepline.io import write_text
from stepline.pipeline import Pipeline
from stepline.plans import pipeline
from stepline.search.indexing import build
from stepline.search.searcher import Searcher
from stepline.spec import Spec

LENGTH = 1000
TEXTS = [f"question number {number}" for number in range(20)]


class Videos(Mapping[str, NDArray[np.float16]]):
    """The rows of some videos, computed when they are read."""

    def __init__(self, names: list[str]) -> None:
        """names: ``v`` and a number."""
        self.names = names

    def __getitem__(self, name: str) -> NDArray[np.float16]:
        return video(int(name[1:]), LENGTH)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def data_set(videos: int) -> Pipeline:
    """Return a data set of URLs, in this folder, with its features."""
    names = [f"v{number:05d}" for number in range(videos)]
    write_text("list.csv", "video,url\n" + "".join(f"{name},https://example.org/{name}.mp4\n" for name in names))
    mine = {"kind": "list", "videos": "list.csv", "backbones": ["moments"]}
    own = {"moments": {"path": str(Path(__file__).with_name("moments.py"))}}
    write_text("config.yaml", json.dumps({"datasets": {"mine": mine}, "backbones": own}))
    made = pipeline(load(None), "mine")
    spec = made.features.spec_of("moments")
    places = [paths.features("mine", shard, spec) for shard in made.videos.all_shards]
    members = [[each.id for each in made.videos.members(shard)] for shard in made.videos.all_shards]
    with ProcessPoolExecutor(2) as pool:
        for _ in pool.map(partial(write, spec), places, members):
            pass
    return made


def write(spec: Spec, place: Path, names: list[str]) -> None:
    """Write a store, unless an earlier run wrote it."""
    if not place.exists():
        store.write(place, spec, Videos(names), 1)


def timed(what: str, call: Callable[[], object]) -> object:
    """Print the wall and CPU time of a call, and the largest memory of the process so far; return its result."""
    start, used = perf_counter(), cpu_s()
    result = call()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{what:44}{perf_counter() - start:10.2f} s{cpu_s() - used:10.2f} CPU s   at most {most:,.0f} MiB, "
        f"load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    return result


def bound(parts: list[NDArray[np.floating]]) -> int:
    """Return the sum of all bytes, eight at once."""
    return sum(int(part.view(np.uint64).sum()) for part in parts)


def questions(searcher: Searcher, repeats: int) -> list[list[tuple[str, float]]]:
    """Print the median time of questions; return the rows of their matches."""
    times, used, found = [], [], []
    for text in TEXTS[:repeats]:
        start, before = perf_counter(), cpu_s()
        found.append([(match.video, match.time_s) for match in searcher.ask(text).matches])
        times.append(perf_counter() - start)
        used.append(cpu_s() - before)
    how = searcher.ask(TEXTS[0]).compared
    print(f"{len(times)} questions: {median(times):.3f} s, {median(used):.3f} CPU s each (medians); {how}", flush=True)
    return found


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--videos", type=int, default=sized(10_000, small=5), help="number of videos of 1,000 rows")
    parser.add_argument("--folder", type=Path, required=True, help="for the files, which a later run uses again")
    parsed = parser.parse_args()
    parsed.folder.mkdir(parents=True, exist_ok=True)
    os.chdir(parsed.folder)
    made = timed("writing the features", lambda: data_set(parsed.videos))
    assert isinstance(made, Pipeline)
    print(json.dumps(timed("building the index", lambda: build(made, "moments").record)))
    place = paths.index("mine", made.features.spec_of("moments"))
    size = sum(file.stat().st_size for file in place.iterdir())
    print(f"the index: {size / 1e6:,.0f} MB, {size / parsed.videos / LENGTH:.1f} bytes per row")
    by_index = timed("loading, by index", lambda: Searcher.open(made))
    assert isinstance(by_index, Searcher)
    near = questions(by_index, 20)
    exactly = timed("loading, exact", lambda: Searcher.open(made, exact=True))
    assert isinstance(exactly, Searcher)
    all_rows = questions(exactly, 5)
    parts = [*exactly.source.corpus.parts]
    for _ in range(3):
        timed("the lower bound: reading all rows", lambda: bound(parts))
    shared = [len({*few} & {*every}) / len(every) for few, every in zip(near, all_rows, strict=False)]
    print(f"matches that both find, of 10: {[round(10 * each) for each in shared]}")


if __name__ == "__main__":
    main()

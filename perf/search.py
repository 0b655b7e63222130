"""A search, loaded, in as many videos as HiREST ranks, beside one product of their rows with a vector and its order."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
from measure import show

from stepline import paths
from stepline.config import validate
from stepline.features import store
from stepline.io import write_text
from stepline.pipeline import Pipeline
from stepline.search.searcher import Searcher

VIDEOS, ROWS, DIMENSION = 4282, 32, 1024
TEXT = "make a memory jar"
TOWER = Path(__file__).with_name("random_tower.py")


def pipeline() -> Pipeline:
    """Return a data set of addresses, in this folder, with a store of random rows of each video."""
    names = [f"v{number:04d}" for number in range(VIDEOS)]
    write_text("list.csv", "video,url\n" + "".join(f"{name},https://example.org/{name}.mp4\n" for name in names))
    mine = {"kind": "list", "videos": "list.csv", "backbones": ["random"]}
    made = Pipeline.of(validate({"datasets": {"mine": mine}, "backbones": {"random": {"path": str(TOWER)}}}), "mine")
    spec, rng = made.features.spec_of("random"), np.random.default_rng(0)
    for shard in made.videos.all_shards:
        rows = {video.id: rng.standard_normal((ROWS, DIMENSION), np.float32) for video in made.videos.members(shard)}
        store.write(paths.features("mine", shard, spec), spec, rows, 8)
    return made


def wall_ms(call: Callable[[], object]) -> float:
    """Return the median time of a call, in milliseconds."""
    times = []
    for _ in range(11):
        start = perf_counter()
        call()
        times.append(1000 * (perf_counter() - start))
    return median(times)


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        made = pipeline()
        start = perf_counter()
        searcher = Searcher.open(made)
        print(f"{VIDEOS} videos of {ROWS} x {DIMENSION} float16, loaded in {perf_counter() - start:.1f} s")
        encoder, corpus = searcher.source.encoder, searcher.source.corpus
        rows, query = np.concatenate(corpus.parts).astype(np.float32), encoder.query(TEXT)  # type: ignore[attr-defined]
        product, text, ask = "product and order", "the text tower alone", "Searcher.ask"
        calls = {
            product: lambda: np.argsort(rows @ query),
            text: lambda: encoder.query(TEXT),  # type: ignore[attr-defined]
            ask: lambda: searcher.ask(TEXT),
        }
        for name, call in calls.items():
            print(f"{name}: {wall_ms(call):.0f} ms")
        show("one question", product, calls)


if __name__ == "__main__":
    main()

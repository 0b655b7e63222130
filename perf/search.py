"""A query to a loaded search over as many videos as HiREST ranks, compared with one sorted product of their rows.

All use one thread, like torch in ``Searcher.ask``. Also, a query at the prompt is compared with one process per query.
"""

import json
import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from pathlib import Path
from statistics import median
from time import perf_counter

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported

import numpy as np
from measure import show, sized

from stepline import paths
from stepline.cli.search import answer, pipeline_of
from stepline.features import store
from stepline.io import write_text
from stepline.pipeline import Pipeline
from stepline.search.searcher import Searcher
from stepline.search.state import state

VIDEOS, ROWS, DIMENSION = sized(4282, small=130), 32, 1024
TEXT = "make a memory jar"
TOWER = Path(__file__).with_name("random_tower.py")
VERB = Namespace(
    configfile=None, dataset="mine", backbone=None, top=10, window=10.0, video=[], like=None, cut=None, exact=False
)


def pipeline() -> Pipeline:
    """Return a data set of URLs, in this folder, with a store of random rows for each video."""
    names = [f"v{number:04d}" for number in range(VIDEOS)]
    write_text("list.csv", "video,url\n" + "".join(f"{name},https://example.org/{name}.mp4\n" for name in names))
    mine = {"kind": "list", "videos": "list.csv", "backbones": ["random"]}
    write_text("config.yaml", json.dumps({"datasets": {"mine": mine}, "backbones": {"random": {"path": str(TOWER)}}}))
    made = pipeline_of(VERB)
    spec, rng = made.features.spec_of("random"), np.random.default_rng(0)
    for shard in made.videos.all_shards:
        rows = {video.id: rng.standard_normal((ROWS, DIMENSION), np.float32) for video in made.videos.members(shard)}
        store.write(paths.features("mine", shard, spec), spec, rows, 8)
    return made


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        made = pipeline()
        start = perf_counter()
        searcher = Searcher.open(made)
        print(f"{VIDEOS} videos of {ROWS} x {DIMENSION} float16, loaded in {perf_counter() - start:.1f} s")
        tower = searcher.source.encoder
        rows = np.concatenate(searcher.source.corpus.parts).astype(np.float32)
        query = tower.query(TEXT)  # type: ignore[attr-defined]
        product = "numpy: one float32 product of all rows, argsort"
        calls = {
            product: lambda: np.argsort(rows @ query),
            "the text tower alone": lambda: tower.query(TEXT),  # type: ignore[attr-defined]
            "the text tower alone, with its padding": lambda: tower.encode(tower.tokens(TEXT)),
            "Searcher.ask": lambda: searcher.ask(TEXT),
        }
        show("a question", product, calls, repeats=11)

        def at_the_prompt() -> str:
            now = pipeline_of(VERB)
            state(now, None)
            return answer(VERB, searcher, TEXT)

        verb, prompt = "the verb with a text", "a question at the prompt, with its page"
        command = [sys.executable, "-m", "stepline", "search", "mine", TEXT]
        calls = {
            "Searcher.ask": calls["Searcher.ask"],
            prompt: at_the_prompt,
            verb: lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL),
        }
        show("a question and its page", "Searcher.ask", calls, repeats=3)
        times = []
        for _ in range(sized(21, small=1)):
            start = perf_counter()
            searcher.ask(TEXT)
            times.append(1000 * (perf_counter() - start))
        print(f"Searcher.ask: {median(times):.0f} ms, at least {min(times):.0f} ms")


if __name__ == "__main__":
    main()

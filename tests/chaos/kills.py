"""Verbs that are killed at a change of their folder, and workflows at any time; the next run goes on.

It makes what an undisturbed one makes, byte for byte, and nothing is left over. At most one video of work is lost, of
transcripts one chunk.
"""

import random
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.asr.deepgram_answers import KEY
from tests.chaos.workfolder import VERBS, VIDEOS, content, copied, differences, done, run, undisturbed
from tests.conftest import snakemake
from tests.workflow.runs import killed

TARGET = "results/mine/videos.csv"
WORKFLOW_EACH = 16
"""Of so many cases one kills the workflow."""


def campaign(seed: int, n: int) -> dict[str, int]:
    """Do the cases of the seeds from ``seed`` on."""
    counts: Counter[str] = Counter()
    for each in range(seed, seed + n):
        draw = random.Random(each)
        if each % WORKFLOW_EACH == WORKFLOW_EACH - 1:
            counts["workflow"] += _workflow(each, draw)
            continue
        verb, replaced = draw.choice([*VERBS]), draw.random() < 0.5
        _, lines = undisturbed(verb, replaced=replaced)
        at = draw.randint(1, lines["change"])
        kill(verb, at, replaced=replaced, times=draw.choice((1, 1, 2)), case=f"seed {each}")
        counts[verb] += 1
    return dict(counts)


def kill(verb: str, at: int, *, replaced: bool, times: int = 1, case: str = "") -> None:
    """Kill a verb at its ``at``-th change, so many times in a row as long as it comes there, then let it run.

    Raises AssertionError where the result differs from an undisturbed one's, or too much was done twice.
    """
    expected, whole = undisturbed(verb, replaced=replaced)
    case = f"{case}: {verb} killed at change {at}, {'a video replaced' if replaced else 'new'}"
    with TemporaryDirectory() as name:
        folder = copied(verb, Path(name, "work"), replaced=replaced)
        work: Counter[str] = Counter()
        deaths = 0
        for _ in range(times):
            ended, lines = run(folder, VERBS[verb], at=at)
            work += lines
            if ended.returncode == 0:
                break
            assert ended.returncode == 137, f"{case}: {ended.stderr[-2000:]}"
            deaths += 1
        work += done(folder, VERBS[verb])
        wrong = [line for line in differences(content(folder), expected) if not _of_others(verb, line)]
        assert not wrong, f"{case}: " + "; ".join(wrong[:20])
        for what in (*(f"decoded {video}" for video in VIDEOS), "asked"):
            twice = work[what] - whole[what]
            assert twice <= deaths, f"{case}: {what} {work[what]} times, undisturbed {whole[what]}"
        again = sum(work[f"decoded {video}"] - whole[f"decoded {video}"] for video in VIDEOS)
        at_once = 2 if verb == "extract" else 1  # one is finished, and one decoder is ahead
        assert again <= at_once * deaths, f"{case}: {again} videos are decoded again after {deaths} kills"


def _of_others(verb: str, line: str) -> bool:
    """Return whether a difference is one that a later job mends: media's pass makes shots and pictures for theirs."""
    return verb == "media" and line.startswith(("datasets/mine/shots/", "datasets/mine/thumbnails/"))


def _workflow(seed: int, draw: random.Random) -> int:
    expected, took_s = _whole_run()
    after_s = draw.uniform(1, took_s)
    options = "--cores", "1", "--configfile", "config.yaml", "--", TARGET
    with TemporaryDirectory() as name:
        folder = copied("media", Path(name, "work"), replaced=False)
        until = time.monotonic() + after_s
        try:
            killed(*options, folder=folder, when=lambda: time.monotonic() > until, DEEPGRAM_API_KEY=KEY)
        except (AssertionError, ProcessLookupError):
            return 0  # it had ended before
        snakemake("--unlock", folder=folder)
        again = snakemake("--rerun-incomplete", *options, folder=folder, DEEPGRAM_API_KEY=KEY)
        assert again.returncode == 0, f"seed {seed}: {again.stderr[-2000:]}"
        wrong = differences(_lasting(folder), expected)
        assert not wrong, f"seed {seed}: the workflow killed after {after_s:.1f} s: " + "; ".join(wrong[:20])
    return 1


@cache
def _whole_run() -> tuple[dict[str, bytes], float]:
    """Return what a workflow makes that nothing disturbs, and how many seconds it took."""
    with TemporaryDirectory() as name:
        folder = copied("media", Path(name, "work"), replaced=False)
        options = "--cores", "1", "--configfile", "config.yaml", "--", TARGET
        begun = time.monotonic()
        ended = snakemake(*options, folder=folder, DEEPGRAM_API_KEY=KEY)
        assert ended.returncode == 0, ended.stderr[-2000:]
        return _lasting(folder), time.monotonic() - begun


def _lasting(folder: Path) -> dict[str, bytes]:
    """Return what `content` does, without what a plan remembers of inodes and times, and of hosts."""
    return {path: each for path, each in content(folder).items() if not path.startswith(".stepline/")}


def main() -> None:
    """Kill each verb at each change, or at every so many-th: ``python -m tests.chaos.kills [STEP]``."""
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 1
    for verb in VERBS:
        for replaced in (False, True):
            _, lines = undisturbed(verb, replaced=replaced)
            for at in range(1, lines["change"] + 1, step):
                kill(verb, at, replaced=replaced)
            print(f"{verb}, {'a video replaced' if replaced else 'new'}: {lines['change']} changes", flush=True)


if __name__ == "__main__":
    main()

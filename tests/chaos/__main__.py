"""The campaign: all parts, one after the other, each for its share of the time.

``python -m tests.chaos --minutes 30 --seed 1`` prints how far it is, and at the end the counts as a Markdown table.
Where nothing failed, `docs/chaos.md` shows them. It exits with 1 where a promise was broken.
"""

import argparse
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec

from stepline.io import write_text
from tests.conftest import ROOT

Campaign = Callable[[int, int], dict[str, int]]
PARTS = ("events", "kills", "disks", "faults", "flips", "strangers", "corpus")
PAGE = ROOT / "docs/chaos.md"
SHOWN = re.compile("(<!-- counts -->\n).*(<!-- end -->\n)", re.DOTALL)
REPORT_S = 20.0
"""Seconds between lines of progress, where a case takes less."""


def parts() -> dict[str, Campaign]:
    """Return the parts that there are, by name."""
    there = (name for name in PARTS if find_spec(f"tests.chaos.{name}"))
    return {name: import_module(f"tests.chaos.{name}").campaign for name in there}


def work(name: str, campaign: Campaign, seed: int, until: float) -> Counter[str]:
    """Do cases of a part from ``seed`` on until the time ``until``, at least one; return the counts.

    A broken promise is printed with what was counted as ``broken promises``, and the next seeds go on.
    """
    counts: Counter[str] = Counter()
    started, done, n = time.monotonic(), 0, 1
    while True:
        try:
            counts.update(campaign(seed + done, n))
        except AssertionError as error:
            counts["broken promises"] += 1
            print(f"{name}.campaign({seed + done}, {n}): {error}", file=sys.stderr, flush=True)
        done += n
        now = time.monotonic()
        each_s, left_s = (now - started) / done, until - now
        print(f"{name}: {done} done, {each_s:.1f} s each, {max(0, left_s):.0f} s to go", flush=True)
        n = max(1, int(min(REPORT_S, left_s) / each_s))
        if left_s < each_s:
            return counts


def table(counted: dict[str, Counter[str]]) -> str:
    """Return the counts of all parts as a Markdown table."""
    lines = (f"| {part} | {what} | {n} |" for part, counts in counted.items() for what, n in sorted(counts.items()))
    return "\n".join(["| part | what | count |", "|---|---|---:|", *lines]) + "\n"


def main() -> int:
    """Run the campaign and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description="Break things in random order.")
    parser.add_argument("--minutes", type=float, default=30, help="for all parts together; default: %(default)s")
    parser.add_argument("--seed", type=int, default=1, help="of the first case of each part; default: %(default)s")
    asked = parser.parse_args()
    started, found, counted = time.monotonic(), parts(), {}
    for number, (name, campaign) in enumerate(found.items(), start=1):
        counted[name] = work(name, campaign, asked.seed, started + 60 * asked.minutes * number / len(found))
    minutes = (time.monotonic() - started) / 60
    shown = f"Seed {asked.seed}, {minutes:.0f} minutes, {os.cpu_count()} cores:\n\n{table(counted)}"
    print(shown)
    if any(counts["broken promises"] for counts in counted.values()):
        return 1
    write_text(PAGE, SHOWN.sub(lambda found: f"{found[1]}{shown}{found[2]}", PAGE.read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())

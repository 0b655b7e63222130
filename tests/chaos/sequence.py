"""Random sequences of what happens to a work folder, with a run after each event; a sequence follows from its seed."""

import argparse
import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import ClassVar

from tests.workflow.runs import messages

Start = Callable[[Path], "Folder"]
"""Makes what happens in a new folder."""


class Folder(ABC):
    """A work folder to which things happen.

    EVENTS: names of its methods, by how often they are drawn, and how many make a sequence in LENGTH. Each gets what to
    draw from, and returns what it did in words, "" where it cannot be done. runs: of Snakemake, so far.
    """

    EVENTS: ClassVar[dict[int, tuple[str, ...]]]
    LENGTH: ClassVar[int] = 8
    folder: Path
    runs: int = 0

    @abstractmethod
    def start(self, random: Random) -> str:
        """Make what the sequence starts from, and return it in words."""

    @abstractmethod
    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run Snakemake with the inputs as they are now, and count it."""

    def check(self) -> subprocess.CompletedProcess[str]:
        """Run once; raise AssertionError where it does not end well or a traceback stands anywhere."""
        done = self.run()
        assert done.returncode == 0, f"exit code {done.returncode}:\n{done.stderr[-4000:]}"
        logs = (path.read_text(errors="replace") for path in sorted((self.folder / "logs").rglob("*.log")))
        for text in (done.stderr, done.stdout, *logs):
            assert "Traceback" not in text, f"a traceback:\n{text[-4000:]}"
        return done

    @abstractmethod
    def compare(self) -> None:
        """Raise AssertionError where the folder is not what a run from scratch makes."""

    def settle(self) -> None:
        """Raise AssertionError where a run more has jobs."""
        done = self.check()
        assert messages(done) == [], f"a run more has jobs: {messages(done)}\n{done.stderr[-3000:]}"

    @classmethod
    def drawn(cls, seed: int) -> list[tuple[str, int]]:
        """Return the events of a sequence, each with the seed of what it draws."""
        random = Random(seed)
        names = [name for weight, names in cls.EVENTS.items() for name in names * weight]
        return [(random.choice(names), random.randrange(2**32)) for _ in range(cls.LENGTH)]


def play(
    start: Start, seed: int, only: Sequence[int] | None = None, say: Callable[[str], object] = str
) -> Counter[str]:
    """Play a sequence, or ``only`` some of its events, counted from 1; return how often what happened.

    say: gets what happens, in words. With ``CHAOS_KEEP`` set, the folder of a failure is kept there. Raises
    AssertionError, with the seed and what happened, where a promise is broken.
    """
    counts, happened, random = Counter({"sequences": 1}), list[str](), Random(seed)
    with TemporaryDirectory(prefix="chaos-") as name:
        folder = start(Path(name).resolve())
        compared = {random.randrange(1, folder.LENGTH), folder.LENGTH}

        def did(line: str) -> None:
            happened.append(line)
            say(line)

        try:
            did(folder.start(random))
            folder.check()
            for number, (event, own_seed) in enumerate(folder.drawn(seed), start=1):
                if (only is None or number in only) and (said := getattr(folder, event)(Random(own_seed))):
                    did(f"{number} {said}")
                    folder.check()
                    counts[f"events: {event.replace('_', ' ')}"] += 1
                if number in compared:
                    folder.settle()
                    folder.compare()
                    counts["comparisons with a run from scratch"] += 1
        except AssertionError as error:
            if keep := os.environ.get("CHAOS_KEEP"):
                shutil.copytree(folder.folder, Path(keep, Path(name).name), symlinks=True)
            raise AssertionError("\n  ".join([f"seed {seed}: {error}\nwhat happened:", *happened])) from None
    return counts + Counter({"runs": folder.runs})


def shrunk(start: Start, seed: int, length: int) -> list[int]:
    """Return the numbers of events that are enough for a sequence to fail, found by leaving out one by one."""
    kept = list(range(1, length + 1))
    for number in reversed(kept):
        without = [each for each in kept if each != number]
        try:
            play(start, seed, without)
        except AssertionError:
            kept = without
    return kept


def main(start: Start, length: int) -> None:
    """Play one sequence, as the command line says."""
    parser = argparse.ArgumentParser(description="Play a sequence of events again.")
    parser.add_argument("seed", type=int)
    parser.add_argument("--only", type=lambda text: [int(each) for each in text.split(",")], help="such as 2,5")
    parser.add_argument("--shrink", action="store_true", help="find the events that are enough to fail")
    asked = parser.parse_args()
    if asked.shrink:
        print("--only", ",".join(map(str, shrunk(start, asked.seed, length))))
    else:
        print(play(start, asked.seed, asked.only, say=print))

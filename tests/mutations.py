"""Planted mistakes: `python -m tests.mutations [NUMBER ...]` shows that the tests detect those of mutations.toml.

Each entry there is a mistake: a file below src, a text that occurs in it once, the wrong text for it, and the tests of
which one must fail. It is planted in a copy of src, which precedes the checkout on PYTHONPATH. A mistake is `killed` if
a test fails. If it SURVIVED, a test is missing: write it. `--changed COMMIT` takes only mistakes whose source or tests
differ from that commit (HEAD if none is given). The exit status is 1 if a mistake survived, was not planted or not
tested, or if these tests fail without a mistake.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TABLE = Path(__file__).with_suffix(".toml")
LONGEST_S = 1800
"""The longest time of a run of pytest, in seconds."""
FAST = "not slow and not long"
"""The tests that are run."""


class Mistake(NamedTuple):
    """file: relative to src. tests: files of tests, or single tests as ``FILE::NAME``."""

    file: str
    old: str
    new: str
    tests: list[str]

    def planted(self) -> str:
        """Return the file's text with the mistake; raise ValueError if the old text does not occur exactly once."""
        text = (ROOT / "src" / self.file).read_text(encoding="utf-8")
        if (count := text.count(self.old)) != 1:
            raise ValueError(f"src/{self.file} has this text {count} times, not once: {self.old}")
        return text.replace(self.old, self.new)


def mistakes() -> list[Mistake]:
    """Return the mistakes of the table; their numbers start at 1."""
    return [Mistake(**each) for each in tomllib.loads(TABLE.read_text(encoding="utf-8"))["mistake"]]


def judged(mistake: Mistake) -> tuple[str, str]:
    """Return the verdict on the tests of a mistake, and why they did not fail as they should."""
    try:
        planted = mistake.planted()
    except (OSError, ValueError) as error:
        return "NOT PLANTED", str(error)
    code, said = tested(mistake.tests, {mistake.file: planted})
    if code == 0:
        return "SURVIVED", f"- {mistake.old}\n+ {mistake.new}"
    return ("killed", "") if code == 1 else ("NOT TESTED", said)


def tested(tests: Sequence[str], planted: dict[str, str]) -> tuple[int, str]:
    """Return pytest's exit status and the end of its output, where files of src have these texts."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        source = Path(folder, "src")
        shutil.copytree(ROOT / "src", source)
        for file, text in planted.items():
            (source / file).write_text(text, encoding="utf-8")
        changes = {"PYTHONPATH": str(source), "HYPOTHESIS_STORAGE_DIRECTORY": folder, "OMP_NUM_THREADS": "1"}
        options = "-x", "-q", "-p", "no:cacheprovider", "-m", FAST, f"--basetemp={folder}/tests"
        done = subprocess.run(
            ["timeout", str(LONGEST_S), sys.executable, "-m", "pytest", *options, *tests],
            cwd=ROOT,
            env=os.environ | changes,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    return done.returncode, done.stdout[-4000:]


def chosen(numbers: Sequence[int], commit: str | None) -> Iterator[tuple[int, Mistake]]:
    """Yield the mistakes with these numbers, or with files that differ from a commit; all if neither is given."""
    differing: list[str] = []
    if commit:
        command = ["git", "diff", "--name-only", "--no-renames", commit]
        differing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for number, mistake in enumerate(mistakes(), 1):
        files = {f"src/{mistake.file}", *(test.partition("::")[0] for test in mistake.tests)}
        if not files.isdisjoint(differing) if commit else not numbers or number in numbers:
            yield number, mistake


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("numbers", nargs="*", type=int, default=[], metavar="NUMBER", help="mistakes; default: all")
    which.add_argument(
        "--changed", nargs="?", const="HEAD", metavar="COMMIT", help="those whose source or tests differ from a commit"
    )
    parser.add_argument("--jobs", type=int, default=1, help="how many to run at once (1)")
    parsed = parser.parse_args()
    listed = list(chosen(parsed.numbers, parsed.changed))
    tests = list(dict.fromkeys(test for _, each in listed for test in each.tests))
    parts = [part for first in range(parsed.jobs) if (part := tests[first :: parsed.jobs])]
    killed = 0
    with ThreadPoolExecutor(parsed.jobs) as pool:
        for code, said in pool.map(tested, parts, repeat({})):
            if code:
                print(f"These tests fail without a mistake:\n{said}")
                return 1
        verdicts = pool.map(judged, [each for _, each in listed])
        for (number, mistake), (verdict, why) in zip(listed, verdicts, strict=True):
            print(f"{number:3} {verdict:11} {mistake.file}", *filter(None, [why]), sep="\n", flush=True)
            killed += verdict == "killed"
    print(f"{killed} of {len(listed)} mistakes killed")
    return int(killed < len(listed))


if __name__ == "__main__":
    sys.exit(main())

"""Disks that are full, over quota or read-only at a change of a verb's folder: one line says so.

The next run goes on.
It makes what an undisturbed one makes, byte for byte. Nothing is half-written in between, and nothing is left over.
"""

import os
import random
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.chaos.workfolder import VERBS, before, content, copied, differences, done, run, undisturbed

FAULTS = {
    "ENOSPC": "the disk is full (",
    "EDQUOT": "the disk's quota is used up (",
    "EROFS": "Read-only file system",
    "EACCES": "Permission denied",
}


def campaign(seed: int, n: int) -> dict[str, int]:
    """Do the cases of the seeds from ``seed`` on."""
    counts: Counter[str] = Counter()
    for each in range(seed, seed + n):
        draw = random.Random(each)
        verb, replaced, fault = draw.choice([*VERBS]), draw.random() < 0.5, draw.choice([*FAULTS])
        _, lines = undisturbed(verb, replaced=replaced)
        refuse(verb, draw.randint(1, lines["change"]), fault, replaced=replaced, case=f"seed {each}")
        counts[fault] += 1
    return dict(counts)


def refuse(verb: str, at: int, fault: str, *, replaced: bool, case: str = "") -> None:
    """Refuse the ``at``-th change of a verb, then let it run; raise AssertionError where a promise is broken."""
    expected, _ = undisturbed(verb, replaced=replaced)
    case = f"{case}: {verb}, {fault} at change {at}, {'a video replaced' if replaced else 'new'}"
    with TemporaryDirectory() as name:
        folder = copied(verb, Path(name, "work"), replaced=replaced)
        ended, _ = run(folder, VERBS[verb], fault=fault, at=at)
        lines = ended.stderr.splitlines()
        if ended.returncode == 0:  # it was only in the way of cleaning up
            assert not lines, f"{case}: {ended.stderr[-2000:]}"
        else:
            assert (ended.returncode, len(lines)) == (2, 1), f"{case}: {ended.returncode}: {ended.stderr[-2000:]}"
            assert lines[0].startswith("error: "), f"{case}: {lines[0]}"
            assert FAULTS[fault] in lines[0], f"{case}: {lines[0]}"
            assert os.sep in lines[0], f"{case}: {lines[0]}"
            known = content(before(verb, replaced=replaced))
            half = [
                path
                for path, there in content(folder).items()
                if there and there not in (known.get(path), expected.get(path)) and ".parts/" not in path
            ]
            assert not half, f"{case}: half-written: {half}"
        done(folder, VERBS[verb])
        wrong = differences(content(folder), expected)
        assert not wrong, f"{case}: " + "; ".join(wrong[:20])

"""Modification times in the future, which a clock that was ahead leaves behind."""

import os
import re
from collections.abc import Iterator
from glob import iglob
from pathlib import Path

from stepline.overview.rules import RULES

FOLDER = Path(".stepline")
"""Its time is set to read the clock of the file system."""


def bring_back() -> Iterator[str]:
    """Set the times of all rules' outputs that are in the future to now, and yield one line that says so.

    The files keep their order: each time is 1 µs before the next later one. Snakemake compares no other times.
    """
    FOLDER.mkdir(exist_ok=True)
    os.utime(FOLDER)
    now_ns = FOLDER.stat().st_mtime_ns
    made = [path for rule in RULES.values() for path in rule.makes]
    made += ["features/{imported}/{spec}/spec.json", "results/htstep/submissions/{entry}/.snakemake_timestamp"]
    files = (file for path in made for file in iglob(re.sub(r"\{\w+\}", "*", path)) if os.path.isfile(file))
    ahead = {file: time_ns for file in files if (time_ns := os.stat(file).st_mtime_ns) > now_ns}
    back_ns = {time_ns: now_ns - 1000 * place for place, time_ns in enumerate(sorted({*ahead.values()}, reverse=True))}
    for file, time_ns in ahead.items():
        os.utime(file, ns=(now_ns, back_ns[time_ns]))
    if ahead:
        yield (
            f"a clock was ahead: {len(ahead)} files, such as {min(ahead)}, had times up to "
            f"{(max(back_ns) - now_ns) / 1e9:.0f} s in the future, which are now in the past"
        )

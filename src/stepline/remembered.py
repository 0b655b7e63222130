"""What was read of small files, until one of them changes: a plan asks for thousands at every start."""

import hashlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from stepline.aside import sweep
from stepline.io import SETTLED_S, canonical_json, parse_json, write_text

REVISION = 2
"""Raise it with a change of what is kept."""
FOLDER = Path(".stepline/remembered")
T = TypeVar("T")


def remembered(name: str, files: Iterable[str], read: Callable[[], T]) -> T:
    """Return ``read()``, or what it returned when the files were the same ones: by inode, size and times.

    name: of the file below ``FOLDER`` that keeps it; its content is JSON. Files may be absent; where all are, nothing
    is kept. A kept file that is damaged is replaced.
    """
    now, changed_ns = seen(files)
    if not changed_ns:
        return read()
    memory = FOLDER / f"{name}.json"
    sweep(memory.parent)
    known = _kept(memory)
    if known.get("seen") == now and "found" in known:
        found: T = known["found"]
        return found
    started_ns = time.time_ns()
    made = read()
    if started_ns - changed_ns > SETTLED_S * 1e9:
        write_text(memory, canonical_json({"seen": now, "found": made}))
    return made


def seen(files: Iterable[str]) -> tuple[str, int]:
    """Return a digest of the state of all files, and when one changed last, in ns since 1970; 0 where all are absent.

    A file's ``ctime`` moves with each change of its content, its name or its other times, and nobody can set it.
    """
    stat, latest, states = os.stat, 0, []
    for file in files:
        try:
            found = stat(file)
        except OSError:
            states.append("")
            continue
        latest = max(latest, found.st_ctime_ns, found.st_mtime_ns)
        states.append(f"{found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns} {file}")
    return hashlib.sha256("\n".join([str(REVISION), *states]).encode()).hexdigest(), latest


def _kept(memory: Path) -> dict[str, Any]:
    try:
        known = parse_json(memory.read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}

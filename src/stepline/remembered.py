"""A cache of results read from small files, valid until one of them changes: each plan reads thousands of files."""

import hashlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from stepline.io import SETTLED_S, canonical_json, parse_json, write_cache

REVISION = 4
"""Raise it with a change of the cached values."""
FOLDER = Path(".stepline/remembered")
T = TypeVar("T")


def remembered(name: str, files: Iterable[str], read: Callable[[], T]) -> T:
    """Return ``read()``, or its cached result if the files have the same inode, size and times.

    name: of the cache file in ``FOLDER``; the result must be JSON. Files may be absent; if all are, nothing is cached.
    A damaged cache file is replaced. Only runs of the workflow write it (``write_cache``).
    """
    now, changed_ns = seen(files)
    if not changed_ns:
        return read()
    memory = FOLDER / f"{name}.json"
    known = _kept(memory)
    if known.get("seen") == now and "found" in known:
        found: T = known["found"]
        return found
    started_ns = time.time_ns()
    made = read()
    if started_ns - changed_ns > SETTLED_S * 1e9:
        write_cache(memory, canonical_json({"seen": now, "found": made}))
    return made


def seen(files: Iterable[str]) -> tuple[str, int]:
    """Return a digest of the state of all files, and the time of the last change in ns since 1970; 0 if all are absent.

    A file's ``ctime`` changes with its content, its name and its other times, and cannot be set.
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
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}

"""The mirror: a local folder that is searched before any download."""

import hashlib
import os
import re
import stat
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stepline.errors import ConfigError
from stepline.io import SETTLED_S, sha256_file, write_cache

DIGESTS = Path(".stepline/digests")
"""One small file per digest, so that parallel jobs need no lock."""


def mirror_root() -> Path | None:
    """Return the folder in ``STEPLINE_MIRROR``, or None if it is not set or empty.

    Raises ConfigError if it is not a folder.
    """
    value = os.environ.get("STEPLINE_MIRROR", "")
    if not value:
        return None
    if not os.path.isdir(value):
        raise ConfigError(f"STEPLINE_MIRROR={value} is not a folder: correct the path, or unset it to download")
    return _resolved(os.path.abspath(value))


@cache
def _resolved(path: str) -> Path:
    return Path(path).resolve()


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """A file to find. path: its canonical path in a mirror. sha256, size: "" and 0 if they are not pinned."""

    path: str
    sha256: str = ""
    size: int = 0


def find(wanted: Wanted) -> Path | None:
    """Return the path of ``wanted`` in the mirror, or None: found by sha256 if pinned, otherwise by canonical path."""
    root = mirror_root()
    if root is None:
        return None
    canonical = os.path.join(root, wanted.path)
    there = Path(canonical) if os.path.isfile(canonical) else None
    if not wanted.sha256 or (there and _is(there, wanted)):
        return there
    others = map(Path, _files_by_size(root).get(wanted.size, []))
    return next((path for path in others if path != there and _is(path, wanted)), None)


def _is(path: Path, wanted: Wanted) -> bool:
    return path.stat().st_size == wanted.size and cached_sha256(path) == wanted.sha256


def signature(wanted: Wanted) -> str:
    """Return a short text that changes if the mirror's file appears, changes or disappears."""
    path = find(wanted)
    return "" if path is None else stamp(path)


def stamp(path: Path | str) -> str:
    """Return the size and the modification time of a file as text; "" if it is not a file."""
    try:
        found = os.stat(path)
    except OSError:
        return ""
    return f"{found.st_size}-{found.st_mtime_ns}" if stat.S_ISREG(found.st_mode) else ""


def cached_sha256(path: Path) -> str:
    """Return the file's sha256, cached by path, size and modification time, for all jobs.

    The sha256 of a file that has just changed is not cached.
    """
    started_s, found = time.time(), path.stat()
    key = os.fsencode(f"{path.resolve()}|{found.st_size}|{found.st_mtime_ns}")
    memory = DIGESTS / hashlib.sha256(key).hexdigest()
    known = memory.read_bytes().decode("ascii", "replace") if memory.is_file() else ""
    if not re.fullmatch("[0-9a-f]{64}", known):
        known = sha256_file(path)
        if started_s - found.st_mtime > SETTLED_S:
            write_cache(memory, known)
    return known


_SIZES: dict[Path, dict[int, list[str]]] = {}


def _files_by_size(root: Path) -> dict[int, list[str]]:
    if root not in _SIZES:
        sizes: dict[int, list[str]] = {}
        seen: set[Path] = set()
        for folder, folders, files in os.walk(root, followlinks=True):
            if (real := Path(folder).resolve()) in seen:
                folders.clear()
                continue
            seen.add(real)
            folders.sort()
            for name in sorted(files):
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    sizes.setdefault(os.path.getsize(path), []).append(path)
        _SIZES[root] = sizes
    return _SIZES[root]

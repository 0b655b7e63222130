"""Hidden temporary files and folders next to their targets. The next process removes the leftovers of a killed one.

A writer holds a lock on its file or folder until it ends, for whatever reason. Locks may not work across hosts that
share the folder, so the leftovers of another host are removed once they have not changed for a day. The umask
determines who may read and write new files and folders.
"""

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

PREFIX = ".writing-"
LOCK, OLD = ".lock", ".old"
"""In a hidden folder: the lock file of its writer, and the folder of the target that is being replaced."""
ABANDONED_S = 86_400.0
"""Seconds without a change after which another host's file or folder counts as a leftover."""
_swept: set[str] = set()


def _host() -> list[str]:
    """Return digests that identify this host: of its name, which each container has of its own, and of its boot id."""
    with suppress(OSError):
        return [_digest(os.uname().nodename), _digest(Path("/proc/sys/kernel/random/boot_id").read_text())]
    return [_digest(os.uname().nodename)] * 2


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:6]


_HOST = _host()


@contextmanager
def file_beside(path: Path) -> Iterator[Path]:
    """Yield a new hidden file next to ``path``, with the same suffix. It is removed at the end if it still exists.

    An OSError that names no file, or the hidden one, names ``path`` instead. Write into the file; do not replace it.
    """
    with _naming(path):
        part, lock = _new(path.parent, path.suffix)
        try:
            yield part
        finally:
            part.unlink(missing_ok=True)
            os.close(lock)


@contextmanager
def folder_beside(path: Path) -> Iterator[Path]:
    """Yield a new hidden folder next to ``path``, which is removed at the end.

    If this process is killed, the next one moves each entry of its folder ``OLD`` back next to ``path``, unless an
    entry of this name exists there. Errors name ``path`` as in ``file_beside``.
    """
    with _naming(path):
        part, lock = _new(path.parent)
        try:
            yield part
        finally:
            _remove(part, lock)


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno and (not error.filename or PREFIX in str(error.filename)):
            error.filename = str(path)
        raise


def sweep(folder: Path) -> None:
    """Remove the leftovers of killed processes from ``folder``, once per process.

    A folder that was moved aside but not yet replaced is moved back.
    """
    where = os.path.abspath(folder)
    if where in _swept:
        return
    _swept.add(where)
    with suppress(FileNotFoundError), os.scandir(where) as entries:
        for part in [Path(entry.path) for entry in entries if entry.name.startswith(PREFIX)]:
            with suppress(OSError):  # another process is removing it, or this account may not
                remove_left(part)


def is_left(part: Path) -> bool:
    """Return whether the writer of a hidden file or folder has ended."""
    with suppress(OSError):
        if (lock := _lock_of_left(part)) is not None:
            os.close(lock)
            return True
    return False


def remove_left(part: Path) -> None:
    """Remove a hidden file or folder whose writer has ended, after moving back what it had moved aside."""
    if (lock := _lock_of_left(part)) is None:
        return
    for old in (part / OLD).glob("*"):
        if not (part.parent / old.name).exists():
            old.rename(part.parent / old.name)
    _remove(part, lock)


def _lock_of_left(part: Path) -> int | None:
    """Lock a hidden file or folder and return the lock's descriptor; None if its writer may still hold it."""
    there = [part, *part.rglob("*")]
    known = not {*_HOST}.isdisjoint(part.name.removeprefix(PREFIX).split("-"))
    if not known and time.time() - max(path.lstat().st_mtime for path in there) < ABANDONED_S:
        return None
    lock = _opened(part)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(lock)
        return None
    return lock


def _opened(part: Path) -> int:
    """Return a descriptor of the file that the writer of a hidden file or folder locks."""
    return os.open(part / LOCK, os.O_RDWR | os.O_CREAT, 0o666) if part.is_dir() else os.open(part, os.O_RDWR)


def _new(parent: Path, suffix: str | None = None) -> tuple[Path, int]:
    """Return a new hidden file, or a folder if there is no suffix, and the descriptor of its lock."""
    parent.mkdir(parents=True, exist_ok=True)
    sweep(parent)
    prefix = "-".join([f"{PREFIX}{_HOST[0]}", _HOST[1], ""])
    while True:
        part = parent.absolute() / f"{prefix}{token_hex(8)}{suffix or ''}"
        if suffix is None:
            part.mkdir()
        else:
            part.touch(exist_ok=False)
        with suppress(FileNotFoundError):  # another process removed it, as it had no lock yet
            lock = _opened(part)
            with suppress(OSError):  # without locks, other processes do not remove it either
                fcntl.flock(lock, fcntl.LOCK_EX)
            if os.fstat(lock).st_nlink:
                return part, lock
            os.close(lock)


def _remove(part: Path, lock: int) -> None:
    """Remove a hidden file or folder and close its lock, which NFS keeps as a file until then."""
    if not part.is_dir():
        part.unlink(missing_ok=True)
    shutil.rmtree(part, ignore_errors=True)
    os.close(lock)
    shutil.rmtree(part, ignore_errors=True)

"""Locks of files, between processes. The kernel releases them if a process dies for whatever reason."""

import errno
import os
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.errors import StoreError

if TYPE_CHECKING:
    from filelock import AcquireReturnProxy, FileLock

NONE = errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP
"""The errors of a file system without locks."""


def acquire(path: Path | str, timeout: float = -1, mode: int = -1) -> "AcquireReturnProxy[FileLock]":
    """Acquire the lock of a file, and return a context manager that releases it.

    timeout: in seconds, then ``filelock.Timeout`` is raised; negative: it waits. mode: of a new file; -1: by the
    umask. Raises StoreError on a file system without locks.
    """
    from filelock import FileLock

    try:
        return FileLock(path, mode=mode, fallback_to_soft=False).acquire(timeout)
    except OSError as error:
        raise without_locks(path, error) if error.errno in NONE else error from None


def without_locks(path: Path | str, error: OSError) -> StoreError:
    """Return the error for a file that cannot be locked."""
    return StoreError(
        f"{os.path.abspath(path)}: {error.strerror}: its file system has no locks, and jobs would overwrite each "
        "other's results: work in a folder on another file system, or have this one mounted with locks (Lustre: flock)"
    )

"""All errors that a user can cause. The command line prints an error as a single line and exits with its code."""

import errno
import os
import re
import tempfile
from pathlib import Path

from stepline.printable import printable


class SteplineError(Exception):
    """Base of all errors that are shown as one line, without a traceback."""

    code = 2
    """The exit code of the command line."""

    def __str__(self) -> str:
        return printable(re.sub(r"\s*\n\s*", " ", Exception.__str__(self)))


class ConfigError(SteplineError):
    """A configuration key or value is not allowed."""


class ReleaseError(SteplineError):
    """Release files are absent, truncated, changed or inconsistent."""


class DownloadError(SteplineError):
    """A required download failed."""


class StoreError(SteplineError):
    """A cached store is damaged or does not contain the requested data."""


class MissingError(SteplineError):
    """Something optional (weights, videos, a key) is absent, but required, for example by ``strict``."""


class SetupError(SteplineError):
    """Something that the configuration needs is broken."""

    code = 1


FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk's quota is used up"}


def in_words(error: OSError) -> str:
    """Return the message for a file that cannot be used, with the mount point if its disk is full."""
    named = os.fsdecode(error.filename or "")
    file = printable(named)
    if error.errno in FULL:
        disk = Path(named).absolute()
        while not disk.is_mount():
            disk = disk.parent
        place = f"{file} on {disk}" if named else f"standard output, {os.getcwd()} or {tempfile.gettempdir()}"
        return f"{FULL[error.errno]} ({place}): free some space and run the same command again"
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return (
            f"{printable(os.path.abspath(named))}: {error.strerror}: this account cannot read or write it: run in a "
            "folder where it can write; `stepline plan` only reads"
        )
    return f"{file or os.getcwd()}: {error.strerror or error}"

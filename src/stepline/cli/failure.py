"""The one-line error with which a verb fails."""

import errno
import logging
import os
import sys
import tempfile
from pathlib import Path

from stepline.errors import SteplineError
from stepline.needs import Need
from stepline.printable import printable

log = logging.getLogger("stepline")

FULL = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "the disk's quota is used up"}


def failed(error: SteplineError | ModuleNotFoundError | OSError, verb: str) -> int:
    """Print the error as one line and return the exit code."""
    if isinstance(error, SteplineError):
        return fail(str(error), error.code)
    if isinstance(error, ModuleNotFoundError):
        from stepline.pipeline import how_to_fill

        package = (error.name or "").partition(".")[0]
        return fail(f"the package {package} is not installed: {how_to_fill(Need('package', package))}")
    if error.errno in FULL:
        let_output_go()
        return fail(f"{FULL[error.errno]} ({_place(error)}): free some space and run the same command again")
    if error.errno in (errno.EACCES, errno.EROFS, errno.EPERM):
        return fail(f"{_place(error)}: {error.strerror}: this account cannot read or write it")
    if isinstance(error, FileNotFoundError) and error.filename:
        return fail(
            f"{error.filename} does not exist: `stepline {verb}` reads it; run `snakemake`, or the stage that writes it"
        )
    if error.filename:
        return fail(f"{error.filename}: {error.strerror}")
    return fail(f"`stepline {verb}` in {os.getcwd()}: {error.strerror or error}")


def let_output_go() -> None:
    """Discard buffered output if the standard output is closed or full."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _place(error: OSError) -> str:
    """Return the file of an error and the mount point of its disk, or the candidates if the error names no file."""
    if not error.filename:
        return f"standard output, {os.getcwd()} or {tempfile.gettempdir()}"
    disk = Path(os.fsdecode(error.filename)).absolute()
    while not disk.is_mount():
        disk = disk.parent
    return f"{os.fsdecode(error.filename)} on {disk}"


def fail(message: str, code: int = 2) -> int:
    """Print a message as one line to standard error and the log, and return the exit code."""
    line = printable(f"error: {message}")
    print(line, file=sys.stderr)
    log.error("%s", line)
    return code

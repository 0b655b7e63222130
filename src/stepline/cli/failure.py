"""The one-line error with which a verb fails."""

import logging
import os
import sys

from stepline.errors import FULL, SteplineError, in_words
from stepline.needs import Need
from stepline.printable import printable

log = logging.getLogger("stepline")


def failed(error: SteplineError | ModuleNotFoundError | OSError, verb: str) -> int:
    """Print the error as one line and return the exit code."""
    if isinstance(error, SteplineError):
        return fail(str(error), error.code)
    if isinstance(error, ModuleNotFoundError):
        from stepline.benchmark.outside import how_to_import
        from stepline.pipeline import how_to_fill

        package = (error.name or "").partition(".")[0]
        said = f"the package {package} is not installed: {how_to_fill(Need('package', package))}"
        return fail(how_to_import(error) or said)
    if error.errno in FULL:
        let_output_go()
    if isinstance(error, FileNotFoundError) and error.filename:
        return fail(
            f"{error.filename} does not exist: `stepline {verb}` reads it; run `snakemake`, or the stage that writes it"
        )
    return fail(in_words(error) if error.filename or error.errno in FULL else f"`stepline {verb}` in {in_words(error)}")


def let_output_go() -> None:
    """Discard buffered output if the standard output is closed or full."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def fail(message: str, code: int = 2) -> int:
    """Print a message as one line to standard error and the log, and return the exit code."""
    line = printable(f"error: {message}")
    print(line, file=sys.stderr)
    log.error("%s", line)
    return code

"""The command line. It parses arguments and calls the package. Each file contains one verb or a few related verbs."""

import argparse
import fcntl
import logging
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any, TextIO

from stepline.cli.failure import fail, failed, let_output_go
from stepline.cli.parser import make_parser
from stepline.errors import SteplineError
from stepline.invocation import Invocation, name_account
from stepline.mirror import mirror_root
from stepline.printable import printable
from stepline.progress import recorded
from stepline.stopping import Stopped, interruptible, kill_children, stopped_by_sigterm

log = logging.getLogger("stepline")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code: 0, or the error's code (usually 2) after one line that explains it."""
    with redirect_stdout(_Printable(sys.stdout)), redirect_stderr(_Printable(sys.stderr)):
        parser = make_parser()
        parsed = parser.parse_args(arguments)
        if parsed.verb is None:
            parser.print_help()
            return 2
        try:
            with interruptible(), stopped_by_sigterm(), recorded(parsed.log):
                return _run(parsed)
        except KeyboardInterrupt:
            kill_children()
            return 128 + signal.SIGINT


class _Printable:
    """A stream whose lines are written as ``printable`` text."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write("\n".join(map(printable, text.split("\n"))))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Formatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def _run(parsed: argparse.Namespace) -> int:
    try:
        _log_to(parsed.log)
        _prepare(parsed)
        parsed.run(parsed)
        sys.stdout.flush()
    except Stopped as stopped:
        kill_children()
        kept = str(stopped) or "what is finished is kept"
        return fail(f"ended by SIGTERM: {kept}; the same command continues from there", stopped.code)
    except BrokenPipeError:
        let_output_go()
    except (SteplineError, ModuleNotFoundError, OSError) as error:
        return failed(error, parsed.verb)
    except Exception as error:
        log.error("error: %s: %s", type(error).__name__, " ".join(str(error).split()))
        raise
    return 0


def _prepare(parsed: argparse.Namespace) -> None:
    name_account()
    if parsed.verb not in ("demo", "doctor"):
        mirror_root()
    if parsed.configfile:
        Invocation(configfiles=(os.path.abspath(parsed.configfile),)).keep()


def _log_to(path: Path | None) -> None:
    logging.raiseExceptions = False  # errors of logging, as on a full disk, are ignored
    log.propagate = False
    log.setLevel(logging.INFO)
    log.handlers = [logging.NullHandler()]
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("w", encoding="utf-8")
        handler = logging.StreamHandler(file)
        handler.setFormatter(_Formatter("%(asctime)s %(levelname)s %(message)s"))
        log.handlers = [handler]
        with suppress(OSError):  # tells `stepline status` that the job runs; some file systems have no locks
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)

"""The prompt of `search`: a question a line, answered by a process that stays loaded."""

import argparse
import os
import signal
import sys
import time
from collections.abc import Collection, Iterator
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Self

from stepline.cli.search import answer, pipeline_of
from stepline.errors import SteplineError, StoreError

Reply = tuple[str | Exception | None, bool]
"""What is printed, or the error, or None where the question must be asked again; and whether the process stays."""
INSTALLED = sys.prefix, sys.base_prefix
END_S = 5.0
"""How long a process may take to end by itself."""


def prompt(parsed: argparse.Namespace) -> None:
    """Answer each line of standard input as the verb answers a text, until an empty line or the end.

    An error is one line, and the next question can be asked. Raises SteplineError where there is nothing to search at
    the start.
    """
    from stepline.cli.failure import failed

    with Loaded(parsed) as loaded:
        loaded.ask("")
        for text in _questions():
            try:
                said = loaded.ask(text)
            except (SteplineError, ModuleNotFoundError, OSError) as error:
                failed(error, parsed.verb)
            else:
                print(said, flush=True)


def _questions() -> Iterator[str]:
    person = sys.stdin.isatty() and sys.stdout.isatty()
    if person:
        import readline  # noqa: F401 - lets `input` edit lines
    try:
        while text := input("search: " if person else "").strip():
            yield text
    except EOFError:
        pass
    finally:
        if person:
            print()


class Loaded:
    """A search in a process of its own. Where what it was loaded from changes, another process loads all anew.

    So nothing stays of what was read or imported before the change.
    """

    def __init__(self, parsed: argparse.Namespace) -> None:
        """Start nothing yet. parsed: the arguments of the verb."""
        self._parsed = parsed
        self._process: BaseProcess | None = None

    def __enter__(self) -> Self:
        """Return it."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._end()

    def ask(self, text: str) -> str:
        """Return what the verb prints for ``text``; of "", which only loads, nothing. Raise the error that it meets."""
        while True:
            said, stays = self._reply(text)
            if not stays:
                self._end()
            if isinstance(said, Exception):
                raise said
            if said is not None:
                return said

    def _reply(self, text: str) -> Reply:
        if self._process is None:
            context = get_context("fork")  # this process has no threads, and has imported nothing heavy
            self._connection, theirs = context.Pipe()
            arguments = self._parsed, theirs, self._connection
            self._process = context.Process(target=_serve, args=arguments, daemon=True)
            self._process.start()
            theirs.close()
        try:
            self._connection.send(text)
            reply: Reply = self._connection.recv()
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode
            return StoreError(f"the process that searches ended with code {code} (-9 where memory ran out)"), False
        return reply

    def _end(self) -> None:
        if self._process is not None:
            self._connection.close()
            self._process.terminate()
            self._process.join(END_S)
            self._process.kill()
            self._process.join()
            self._process = None


def _serve(parsed: argparse.Namespace, connection: Connection, theirs: Connection) -> None:
    """Reply to each text until the other end is closed, also by the end of its process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    theirs.close()
    began_ns, before, searcher, loaded = time.time_ns(), {*sys.modules}, None, ""
    from stepline.search.searcher import Searcher, checked
    from stepline.search.state import state

    while True:
        try:
            text = connection.recv()
        except EOFError:
            return
        said: str | Exception | None = None
        try:
            checked(text or "text", parsed.top, parsed.window)
            made = pipeline_of(parsed)
            now = state(made, parsed.backbone)
            if searcher is None:
                searcher, loaded = Searcher.open(made, parsed.backbone), now
            elif now != loaded or _has_new_code(began_ns, before):
                searcher = None
            if searcher is not None:
                said = answer(parsed, searcher, text) if text else ""
        except (SteplineError, ModuleNotFoundError, OSError) as error:
            said = error
        connection.send((said, searcher is not None))


def _has_new_code(began_ns: int, before: Collection[str]) -> bool:
    """Return whether a module that is not among ``before``, nor installed, has changed since a time, or is gone."""
    modules = (vars(module) for name, module in [*sys.modules.items()] if name not in before)
    files = (module["__file__"] for module in modules if module.get("__file__"))
    try:
        return any(os.stat(file).st_ctime_ns > began_ns for file in files if not file.startswith(INSTALLED))
    except OSError:
        return True

"""The prompt of `search`: one query per line, answered by a process that stays loaded."""

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
"""The text to print, the error, or None if the query must be sent again; and whether the process can be reused."""
INSTALLED = sys.prefix, sys.base_prefix
END_S = 5.0
"""Seconds that a process has to end by itself."""


def prompt(parsed: argparse.Namespace) -> None:
    """Answer each line of standard input like the verb's argument ``text``, until an empty line or the end.

    An error is printed as one line, and the prompt continues. Raises SteplineError if there is nothing to search.
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
    """A search in a separate process, which is replaced if its files or source code change.

    A new process contains nothing that was read or imported before the change.
    """

    def __init__(self, parsed: argparse.Namespace) -> None:
        """Store the arguments of the verb; the process starts with the first query."""
        self._parsed = parsed
        self._process: BaseProcess | None = None

    def __enter__(self) -> Self:
        """Return the object itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self._end()

    def ask(self, text: str) -> str:
        """Return the verb's output for ``text``, or raise its error. An empty ``text`` only loads and returns ""."""
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
            context = get_context("fork")  # safe: this process has no threads and no heavy imports
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
            return StoreError(f"the search process ended with code {code} (-9: out of memory)"), False
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
    """Answer each query until the other end closes the connection or its process ends."""
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
                searcher, loaded = Searcher.open(made, parsed.backbone, exact=parsed.exact), now
            elif now != loaded or _has_new_code(began_ns, before):
                searcher = None
            if searcher is not None:
                said = answer(parsed, searcher, text) if text else ""
        except (SteplineError, ModuleNotFoundError, OSError) as error:
            said = error
        connection.send((said, searcher is not None))


def _has_new_code(began_ns: int, before: Collection[str]) -> bool:
    """Return whether a module, neither installed nor in ``before``, has changed or disappeared since a time."""
    modules = (vars(module) for name, module in [*sys.modules.items()] if name not in before)
    files = (module["__file__"] for module in modules if module.get("__file__"))
    try:
        return any(os.stat(file).st_ctime_ns > began_ns for file in files if not file.startswith(INSTALLED))
    except OSError:
        return True

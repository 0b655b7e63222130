"""The output: a log, or a terminal whose last lines are updated in place."""

import os
import shutil
import sys
import threading
from collections.abc import Sequence
from typing import TextIO

from stepline.printable import printable

ABOVE, BELOW = "\033[{}A\r", "\033[J"
"""Escape codes: move up by some lines; erase everything below."""


class Screen:
    """A stream whose last lines can be updated if it is a terminal.

    After ``catch``, the output of jobs on a terminal passes through this process too, and is printed above these lines.
    """

    def __init__(self, stream: TextIO) -> None:
        """Write nothing yet."""
        self.live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self.muted = False
        """Whether the output of jobs is suppressed, as after an interrupt."""
        self._stream = stream
        self._lock = threading.RLock()
        self._shown: list[str] = []
        self._caught: list[tuple[int, int, threading.Thread]] = []

    def say(self, text: str) -> None:
        """Write a permanent line."""
        with self._lock:
            self._write([printable(text)], self._shown)

    def show(self, lines: Sequence[str]) -> None:
        """Replace the last lines."""
        if self.live:
            with self._lock:
                self._write([], lines)

    def _write(self, lasting: Sequence[str], last: Sequence[str]) -> None:
        before = ABOVE.format(len(self._shown)) + BELOW if self._shown else ""
        width = shutil.get_terminal_size().columns - 1
        self._shown = [line[:width] for line in last]
        self._stream.write(before + "".join(f"{line}\n" for line in [*lasting, *self._shown]))
        self._stream.flush()

    def catch(self) -> None:
        """Redirect standard output and standard error, also of processes that start from now on, to this screen."""
        if not self.live or self._caught:
            return
        sys.stdout.flush()
        sys.stderr.flush()
        self._stream = os.fdopen(os.dup(self._stream.fileno()), "w", encoding="utf-8", errors="replace")
        for file in (1, 2):
            real = os.dup(file)
            ours, theirs = os.pipe()
            os.dup2(theirs, file)
            os.close(theirs)
            thread = threading.Thread(target=self._pass_on, args=(ours, real), daemon=True)
            thread.start()
            self._caught.append((file, real, thread))

    def _pass_on(self, ours: int, real: int) -> None:
        with os.fdopen(ours, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if self.muted:
                    continue
                with self._lock:
                    shown, self._shown = self._shown, []
                    self._stream.write(ABOVE.format(len(shown)) + BELOW if shown else "")
                    self._stream.flush()
                    os.write(real, line.encode() if line.endswith("\n") else f"{line}\n".encode())
                    self._write([], shown)

    def close(self) -> None:
        """Remove the last lines, and restore standard output and standard error."""
        self.show([])
        sys.stdout.flush()
        sys.stderr.flush()
        for file, real, thread in self._caught:
            os.dup2(real, file)
            thread.join(1)  # a process that outlives the run may keep the other end open
        self._caught = []

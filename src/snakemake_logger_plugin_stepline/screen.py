"""Where lines are written: a log, or a terminal with lines at its end that change."""

import os
import shutil
import sys
import threading
from collections.abc import Sequence
from typing import TextIO

ABOVE, BELOW = "\033[{}A\r", "\033[J"
"""Up by some lines, and erase all that is below."""


class Screen:
    """A stream, of which the last lines may change where it is a terminal.

    There, what jobs print on their outputs goes through this process too, from ``catch`` on, and is put above them.
    """

    def __init__(self, stream: TextIO) -> None:
        """Write nothing yet."""
        self.live = stream.isatty() and os.environ.get("TERM") != "dumb"
        self.muted = False
        """Whether what jobs print is left out, as when they are interrupted."""
        self._stream = stream
        self._lock = threading.RLock()
        self._shown: list[str] = []
        self._caught: list[tuple[int, int, threading.Thread]] = []

    def say(self, text: str) -> None:
        """Write lines that stay."""
        with self._lock:
            self._write([*text.splitlines()], self._shown)

    def show(self, lines: Sequence[str]) -> None:
        """Have these lines be the last ones, in place of those before."""
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
        """Take what comes on standard output and standard error, which processes started from now on inherit."""
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
        """Remove the lines that change, and let standard output and standard error go."""
        self.show([])
        sys.stdout.flush()
        sys.stderr.flush()
        for file, real, thread in self._caught:
            os.dup2(real, file)
            thread.join(1)  # a process that outlives the run may hold the other end
        self._caught = []

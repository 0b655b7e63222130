"""Decoding in a process that can be killed, with a time limit and a memory limit for each video."""

import ctypes
import os
import resource
import signal
import threading
import time
import traceback
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from pathlib import Path
from typing import Any, Self

from stepline.errors import SetupError
from stepline.media.decode import MediaError

PR_SET_PDEATHSIG = 1
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGE = 8 << 20
"""Freed blocks of at least this many bytes are returned at once: more than a frame, less than a long video's index."""
GROWN = 256 << 20
"""How many bytes a process may grow after its first video before it is replaced."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits for decoding one video.

    memory_mb: in addition to the process's memory before the video. s_per_video_s: seconds per second of video.
    least_s: the time limit of a short video, in seconds.
    """

    memory_mb: int
    least_s: float
    s_per_video_s: float


class Decoder:
    """A process that runs one task after the other, each within the limits.

    It starts with the first task. It is replaced if it dies, hangs or grows, or if the caller abandons a task. So no
    video affects the next one.
    """

    def __init__(self, limits: Limits) -> None:
        """Keep the limits; the process starts with the first task."""
        self.limits = limits
        self._process: BaseProcess | None = None
        self._first = True

    def __enter__(self) -> Self:
        """Return this decoder."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()

    def __call__(self, work: Callable[..., Iterator[Any]], *arguments: Any, duration_s: float) -> Generator[Any]:
        """Yield the items of ``work(*arguments)``; arguments and items are pickled.

        duration_s: the video's length. The time in which the process waits for the caller to read items does not count.
        Raises the MediaError, SetupError, OSError or ModuleNotFoundError of ``work``, and MediaError if it raises
        another error, exceeds the limits or crashes: errors of the decoder are attributed to the video.
        """
        self.start()
        time_s = left_s = max(self.limits.least_s, self.limits.s_per_video_s * duration_s)
        ended = False
        try:
            self._pipe.send((work, arguments))
            while True:
                start = time.monotonic()
                if not self._pipe.poll(max(0.0, left_s)):
                    raise MediaError(f"decoding takes longer than {time_s:.0f} s: see media.limits")
                left_s -= time.monotonic() - start
                kind, item = self._pipe.recv()
                if kind == "item":
                    yield item
                    continue
                error, grown = item
                ended = grown < GROWN
                if error is not None:
                    raise error
                return
        except (EOFError, ConnectionError):
            raise MediaError(self._died()) from None
        finally:
            if not ended:
                self.close()

    def start(self) -> None:
        """Start the process if there is none. The first one is a fork if this process has only one thread."""
        if self._process is not None and self._process.is_alive():
            return
        self.close()
        copied = self._first and threading.active_count() == 1
        self._first = False
        context = get_context("fork" if copied else "spawn")
        self._pipe, theirs = context.Pipe()
        process: BaseProcess = context.Process(  # type: ignore[attr-defined]
            target=_serve, args=(theirs, os.getpid(), self.limits.memory_mb), daemon=True
        )
        process.start()
        # At its end Python sends SIGTERM, which this process ignores, and waits for it.
        Finalize(self, process.kill, exitpriority=0)
        self._process = process
        theirs.close()

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None

    def _died(self) -> str:
        assert self._process is not None
        self._process.join()
        if (code := self._process.exitcode or 0) >= 0:
            return f"the decoder ended with exit code {code} and no message"
        name, memory_mb = signal.Signals(-code).name, self.limits.memory_mb
        return f"the decoder crashed ({name}); its limit is {memory_mb} MB: see media.limits"


def killable(work: Callable[..., Iterator[Any]], *arguments: Any, limits: Limits, duration_s: float) -> Iterator[Any]:
    """Yield the items of a ``Decoder`` that runs only this task, and raise its errors."""
    with Decoder(limits) as decoder:
        yield from decoder(work, *arguments, duration_s=duration_s)


def _serve(pipe: Connection, parent: int, memory_mb: int) -> None:
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    for each in (signal.SIGTERM, signal.SIGINT):  # schedulers and terminals signal all processes
        signal.signal(each, signal.SIG_IGN)  # the parent decides
    if os.getppid() != parent:
        os._exit(1)
    if hasattr(libc, "mallopt"):  # glibc by default keeps the memory that opening a long video needed
        libc.mallopt(M_MMAP_THRESHOLD, LARGE)
        libc.mallopt(M_TRIM_THRESHOLD, 4 * LARGE)
    first = 0
    while True:
        try:
            work, arguments = pipe.recv()
        except EOFError:
            return
        error = _done(pipe, memory_mb, work, arguments)
        now = data_bytes()
        first = first or now  # includes the packages that the first task imported
        pipe.send(("end", (error, now - first)))


def _done(
    pipe: Connection, memory_mb: int, work: Callable[..., Iterator[Any]], arguments: tuple[Any, ...]
) -> Exception | None:
    """Send the items of a task; return its error."""
    before = resource.getrlimit(resource.RLIMIT_DATA)
    try:
        resource.setrlimit(resource.RLIMIT_DATA, (data_bytes() + (memory_mb << 20), before[1]))
        for item in work(*arguments):
            pipe.send(("item", item))
    except MemoryError:
        return MediaError(f"needs more than {memory_mb} MB: see media.limits")
    except (MediaError, SetupError, OSError, ModuleNotFoundError) as error:
        return error
    except Exception as error:  # noqa: BLE001 - any error of a decoder is recorded for its video
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__} in {Path(where.filename).name}, line {where.lineno}: {error}"
        return MediaError(f"the decoder failed: {' '.join(reason.split())}")
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
    return None


def data_bytes() -> int:
    """Return the memory of this process that counts against RLIMIT_DATA, in bytes."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData:"))

"""Decoding in a process that can be killed: a limit of time and one of memory for each video."""

import ctypes
import os
import resource
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from stepline.media.decode import MediaError

PR_SET_PDEATHSIG = 1
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
LARGE = 8 << 20
"""From how many bytes on freed memory goes back at once: more than a frame, less than the index of hours of video."""


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What decoding one video may take.

    memory_mb: beyond the program itself. s_per_video_s: seconds for each second of video; least_s: for a short one.
    """

    memory_mb: int
    least_s: float
    s_per_video_s: float


def killable(work: Callable[..., Iterator[Any]], *arguments: Any, limits: Limits, duration_s: float) -> Iterator[Any]:
    """Yield what ``work(*arguments)`` yields, from another process: its arguments and items are pickled.

    duration_s: the video's length. The process waits while nobody takes its items; that time does not count. Raises
    the MediaError, OSError or ModuleNotFoundError that ``work`` raises, and MediaError where it raises anything else,
    takes more than the limits or crashes: a fault of the decoder is its video's.
    """
    time_s = max(limits.least_s, limits.s_per_video_s * duration_s)
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(theirs, os.getpid(), limits.memory_mb, work, arguments), daemon=True)
    process.start()
    theirs.close()
    left_s = time_s
    try:
        while True:
            start = time.monotonic()
            if not ours.poll(max(0.0, left_s)):
                raise MediaError(f"decoding takes longer than {time_s:.0f} s: see media.limits")
            left_s -= time.monotonic() - start
            kind, item = ours.recv()
            if kind == "done":
                return
            if kind == "error":
                raise item
            yield item
    except EOFError:
        process.join()
        if (code := process.exitcode or 0) >= 0:
            raise MediaError(f"the decoder ended with exit code {code} and no word") from None
        name = signal.Signals(-code).name
        raise MediaError(f"the decoder crashed ({name}); it may take {limits.memory_mb} MB: see media.limits") from None
    finally:
        process.kill()
        process.join()
        ours.close()


def _serve(
    pipe: Connection, parent: int, memory_mb: int, work: Callable[..., Iterator[Any]], arguments: tuple[Any, ...]
) -> None:
    libc = ctypes.CDLL(None)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # a scheduler may send it to all processes: the parent decides
    if os.getppid() != parent:
        os._exit(1)
    if hasattr(libc, "mallopt"):  # glibc's; left to itself it keeps what opening a long video took
        libc.mallopt(M_MMAP_THRESHOLD, LARGE)
        libc.mallopt(M_TRIM_THRESHOLD, 4 * LARGE)
    limit = data_bytes() + (memory_mb << 20)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    message: tuple[str, Any] = ("done", None)
    try:
        for item in work(*arguments):
            pipe.send(("item", item))
    except MemoryError:
        message = "error", MediaError(f"needs more than {memory_mb} MB: see media.limits")
    except (MediaError, OSError, ModuleNotFoundError) as error:
        message = "error", error
    except Exception as error:  # noqa: BLE001 - whatever a decoder does is its video's, and goes into its record
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"{type(error).__name__} in {Path(where.filename).name}, line {where.lineno}: {error}"
        message = "error", MediaError(f"the decoder failed: {' '.join(reason.split())}")
    pipe.send(message)


def data_bytes() -> int:
    """Return what counts against RLIMIT_DATA in this process, in bytes."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("VmData:"))

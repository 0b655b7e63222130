"""Processes as ``/proc`` has them, and their priority."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def ordinary() -> Iterator[None]:
    """Return this thread to its ordinary priority after encoding: where root runs it, SVT-AV1 makes it real-time."""
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def alive(process: int) -> bool:
    """Return whether a process runs. One that has ended while its file is read does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(process: int) -> list[int]:
    """Return the processes that the threads of a process have started."""
    found = []
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            found += map(int, (thread / "children").read_text().split())
    return found

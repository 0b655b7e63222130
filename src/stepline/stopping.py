"""SIGTERM, by which a scheduler ends a job some time before it kills it."""

import multiprocessing
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(BaseException):
    """The process is asked to end; the message says what is kept. No handler of errors catches it."""

    code = 128 + signal.SIGTERM


class _Asked:
    deferred = False
    pending = False


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Have the main thread raise Stopped at the first SIGTERM within this block; from then on all are ignored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _Asked.deferred = _Asked.pending = False
    before = signal.signal(signal.SIGTERM, _asked)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is _asked:
            signal.signal(signal.SIGTERM, before)


def _asked(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _Asked.pending = _Asked.deferred
    if not _Asked.deferred:
        raise Stopped


@contextmanager
def whole_step() -> Iterator[None]:
    """Have Stopped wait for the end of this block, also for one by an error. Not to be nested."""
    _Asked.deferred = True
    try:
        yield
    finally:
        _Asked.deferred = False
        if _Asked.pending:
            _Asked.pending = False
            raise Stopped


def kill_children() -> None:
    """Kill the processes that this one has started by ``multiprocessing``: nobody takes any more what they send."""
    for process in multiprocessing.active_children():
        process.kill()

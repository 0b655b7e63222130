"""Handling of SIGTERM, with which a scheduler asks a job to end some time before it kills it, and of interrupts."""

import multiprocessing
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Stopped(BaseException):
    """The process was asked to end; the message lists what is kept. Handlers of ``Exception`` do not catch it."""

    code = 128 + signal.SIGTERM


class _Asked:
    deferred = False
    pending = False


@contextmanager
def stopped_by_sigterm() -> Iterator[None]:
    """Raise Stopped in the main thread at the first SIGTERM within this block; later ones are ignored."""
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


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt at SIGINT within this block if SIGINT would end the process, as before and after it."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        if before is signal.SIG_DFL:
            signal.signal(signal.SIGINT, before)


def _asked(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _Asked.pending = _Asked.deferred
    if not _Asked.deferred:
        raise Stopped


@contextmanager
def whole_step() -> Iterator[None]:
    """Delay Stopped until the end of this block, even if it ends with an error. Blocks must not be nested."""
    _Asked.deferred = True
    try:
        yield
    finally:
        _Asked.deferred = False
        if _Asked.pending:
            _Asked.pending = False
            raise Stopped


def kill_children() -> None:
    """Kill the processes that this one started with ``multiprocessing``, as their output is no longer read."""
    for process in multiprocessing.active_children():
        process.kill()

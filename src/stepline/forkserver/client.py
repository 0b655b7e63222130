"""A job's own process, which imports little and ends as its fork does."""

import os
import signal
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

from stepline.forkserver import message

FILES = 0, 1, 2
LOST = 128 + signal.SIGKILL


def ask(address: str) -> int | None:
    """Have this process's words done by a fork, and return its exit code; None where nothing was begun.

    address: of the listener's socket. Where a signal ends the fork, it ends this process too. SIGINT and SIGTERM are
    handed on.
    """
    variables = [b"%s=%s" % each for each in os.environb.items()]
    texts = [os.fsencode(each) for each in (sys.executable, os.getcwd(), *sys.argv[1:])]
    request = message([b"%d" % len(variables), *variables, *texts])
    listener = socket(AF_UNIX, SOCK_STREAM)
    try:
        listener.connect(address)
        listener.sendall(request)
        files = b"".join(file.to_bytes(4, sys.byteorder) for file in FILES)
        listener.sendmsg([b"!"], [(SOL_SOCKET, SCM_RIGHTS, files)])
    except OSError:
        return None
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: listener.send(bytes([number])))
    if not _next(listener, 1):  # no more: a short job may have ended already
        return None
    if not (answer := _next(listener, 4)):
        print("error: the process that forks jobs was killed; the same command goes on from there", file=sys.stderr)
        return LOST
    code = int(answer)
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _next(listener: socket, size: int) -> bytes:
    """Return what comes next, at most ``size`` bytes; nothing where the other end is gone."""
    try:
        return listener.recv(size)
    except OSError:
        return b""

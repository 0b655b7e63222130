"""A job's own process, which imports little and ends in the same way as its fork."""

import os
import signal
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SOCK_STREAM, SOL_SOCKET, socket

from stepline.forkserver import message

FILES = 0, 1, 2
LOST = 128 + signal.SIGKILL


def ask(address: str) -> int | None:
    """Run this process's command line in a fork, and return its exit code; None if no fork was started.

    address: of the listener's socket. If a signal ends the fork, the same signal ends this process. SIGINT and SIGTERM
    are passed on to the fork.
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
    if not _next(listener, 1):  # the first byte only: a short job's exit code may follow already
        return None
    if not (answer := _next(listener, 4)):
        print("error: the process that forks jobs was killed: run the same command again to continue", file=sys.stderr)
        return LOST
    code = int(answer)
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


def _next(listener: socket, size: int) -> bytes:
    """Return the next bytes, at most ``size``; none if the other end is closed."""
    try:
        return listener.recv(size)
    except OSError:
        return b""

"""The socket for jobs in Snakemake's process, and the servers that it starts for them."""

import atexit
import os
import socket
import subprocess
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

from stepline.forkserver import message, received

VARIABLE = "STEPLINE_FORKSERVER"
SHELLS = b"_", b"SHLVL", b"OLDPWD"
"""Variables that a shell changes and that no job reads."""


@cache
def listen() -> None:
    """Let servers fork the jobs of this process, until it ends. No server starts before the first job.

    If the socket cannot be created, as in a temporary folder with a long path, jobs start without a server.
    """
    folder = TemporaryDirectory(prefix="stepline-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    with suppress(OSError):
        listener = Listener(Path(folder.name, "jobs"))
        atexit.register(listener.end)
        os.environ[VARIABLE] = str(listener.address)


@dataclass(frozen=True)
class _Environment:
    """The properties that a server shares with its jobs."""

    executable: bytes
    folder: bytes
    variables: tuple[bytes, ...]


class Listener:
    """A socket, and a thread that passes each job to a server, which it starts if there is none.

    The servers are children of this process, which waits for them, so their CPU time counts as its own.
    """

    def __init__(self, address: Path) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(address))
        self._socket.listen(128)
        self._servers: dict[_Environment, tuple[socket.socket, subprocess.Popen[bytes]]] = {}
        Thread(target=self._serve, name="forkserver", daemon=True).start()

    def _serve(self) -> None:
        while True:
            job, _ = self._socket.accept()
            with closing(job), suppress(OSError, ValueError):  # the job then does its own work
                self._hand_on(job)

    def _hand_on(self, job: socket.socket) -> None:
        size = int.from_bytes(received(job, 4), "big")
        number, *texts = received(job, size).split(b"\0")
        variables, (executable, folder, *words) = texts[: int(number)], texts[int(number) :]
        kept = tuple(sorted(each for each in variables if each.partition(b"=")[0] not in SHELLS))
        request = message(words)
        environment = _Environment(executable, folder, kept)
        if environment in self._servers:
            with suppress(OSError):  # it was killed
                _send(self._servers[environment][0], request, job)
                return
            self._end(environment)
        self._servers[environment] = self._start(environment)
        _send(self._servers[environment][0], request, job)

    def end(self) -> None:
        """End the servers, which kill any remaining jobs."""
        for environment in [*self._servers]:
            self._end(environment)

    def _end(self, environment: _Environment) -> None:
        control, server = self._servers.pop(environment)
        control.close()
        server.wait()

    def _start(self, environment: _Environment) -> tuple[socket.socket, subprocess.Popen[bytes]]:
        ours, theirs = socket.socketpair()
        with theirs:
            control = str(theirs.fileno())
            server = subprocess.Popen(
                [environment.executable, "-m", "stepline.forkserver.server", control, str(self.address)],
                cwd=environment.folder,
                env=dict(each.split(b"=", 1) for each in environment.variables),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # so that Ctrl+C reaches jobs once, through their clients
            )
        return ours, server


def _send(server: socket.socket, request: bytes, job: socket.socket) -> None:
    sent = socket.send_fds(server, [request], [job.fileno()])
    server.sendall(request[sent:])

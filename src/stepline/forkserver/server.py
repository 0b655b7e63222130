"""``python -m stepline.forkserver.server CONTROL ADDRESS``: forks a child for each job that the listener passes on.

CONTROL is the descriptor of a socket to the listener, and ADDRESS is the path of the listener's socket for jobs.
"""

import atexit
import ctypes
import gc
import os
import runpy
import select
import signal
import socket
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import NoReturn

import stepline
from stepline.forkserver import received

IMPORTED = "stepline.cli", "stepline.progress", "filelock", "numpy", "pyarrow.parquet"
"""Modules that jobs of most verbs import."""
BY_VERB = {"extract": ("stepline.features.extract", "zarr"), "encode": ("torch", "transformers.modeling_utils")}
"""Modules that nearly all jobs of a verb import: the server imports them before the verb's first job."""
DONE_BY_OTHERS = {"extract", "media", "shots", "thumbnails"}
"""Verbs whose jobs may find their work already done. The server imports a module that two of their jobs have imported;
for other verbs, one job is enough."""
PR_SET_PDEATHSIG = 1
SIGNALS = signal.SIGINT, signal.SIGTERM
"""Signals that the server ignores, because the listener ends it after its jobs; forks do not ignore them."""
LASTING = (sys.prefix, sys.base_prefix, *stepline.__path__)
"""Folders of modules that are the same for all jobs, which excludes a user's own modules."""
BESIDE_TORCH = {"torchvision", "timm", "open_clip", "transformers"}
OF_STAGES = {"stepline", "pyarrow", "jsonschema", "matplotlib", "jinja2", "av", "cv2", "zarr", "scenedetect"}
LEARNED = {*OF_STAGES, "torch", "scipy", "sklearn", *BESIDE_TORCH}
"""Packages that are slow to import, or that many jobs import."""


@dataclass(frozen=True)
class _Job:
    """A fork, the connection of the process that waits for it, and the file with the names of its imports."""

    verb: str
    process: int
    ended: int
    connection: socket.socket
    names: int

    def close(self) -> None:
        self.connection.close()
        os.close(self.ended)
        os.close(self.names)


class _Server:
    """A process and its forks. It starts no threads and does no work, so that it is safe to fork."""

    def __init__(self, control: socket.socket, address: Path) -> None:
        self.control, self.address, self.itself, self.poll = control, address, os.getpid(), select.poll()
        self.poll.register(control, select.POLLIN)
        self.jobs: dict[int, _Job] = {}
        """By the descriptors of their connections and of their processes."""
        self.imported: defaultdict[str, Counter[str]] = defaultdict(Counter)

    def serve(self) -> tuple[list[str], int]:
        """Fork jobs until the listener ends. Return only in a fork: its arguments, and the file for its imports."""
        while True:
            file, _ = self.poll.poll()[0]
            job = self.jobs.get(file)
            if job is None:
                if fork := self._take():
                    return fork
            elif file == job.ended:
                self._finish(job)
            else:
                self._obey(job)

    def _take(self) -> tuple[list[str], int] | None:
        """Fork the next job. Return its arguments and its file for imports in the fork, and None in the server."""
        size, handed, _, _ = socket.recv_fds(self.control, 4, 1)
        if not handed:
            self._end()
        connection = socket.socket(fileno=handed[0])
        words = os.fsdecode(received(self.control, int.from_bytes(size, "big"))).split("\0")
        verb = words[2] if words[0] == "--log" else words[0]
        try:
            connection.send(b"+")
            files = socket.recv_fds(connection, 1, 3)[1]
        except OSError:  # the requesting process has ended
            connection.close()
            return None
        enough = 2 if verb in DONE_BY_OTHERS else 1
        learned = (name for name, times in self.imported[verb].items() if times >= enough)
        self.import_all([*BY_VERB.get(verb, ()), *learned])
        names = os.memfd_create("imported")
        if (process := os.fork()) == 0:
            self._become(files, connection)
            return words, names
        with suppress(ProcessLookupError, PermissionError):  # the fork does the same, as either may run first
            os.setpgid(process, process)
        for each in files:
            os.close(each)
        job = _Job(verb, process, os.pidfd_open(process), connection, names)
        for file in (job.ended, connection.fileno()):
            self.jobs[file] = job
            self.poll.register(file, select.POLLIN)
        return None

    def _become(self, files: list[int], connection: socket.socket) -> None:
        """Give a fork the files of the requesting process; its process group ends with the server."""
        os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != self.itself:
            os._exit(1)
        self.control.close()
        connection.close()
        for job in {*self.jobs.values()}:
            job.close()
        for place, file in enumerate(files):
            os.dup2(file, place)
            os.close(file)
        sys.stdout.reconfigure(line_buffering=os.isatty(1))  # type: ignore[union-attr]
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)

    def _obey(self, job: _Job) -> None:
        """Pass signals on to a job; kill it and its children if the requesting process has ended."""
        try:
            numbers = job.connection.recv(64)
        except OSError:
            numbers = b""
        for number in numbers:
            os.kill(job.process, number)
        if not numbers:
            os.killpg(job.process, signal.SIGKILL)
            self._forget(job.connection.fileno())

    def _finish(self, job: _Job) -> None:
        code = os.waitstatus_to_exitcode(os.waitpid(job.process, 0)[1])
        self.imported[job.verb].update(os.pread(job.names, os.fstat(job.names).st_size, 0).decode().split())
        with suppress(OSError):
            job.connection.send(b"%d" % code)
        for file in (job.ended, job.connection.fileno()):
            self._forget(file)
        job.close()

    def _forget(self, file: int) -> None:
        if self.jobs.pop(file, None):
            self.poll.unregister(file)

    def import_all(self, names: Iterable[str]) -> None:
        """Import the modules that are not yet imported, for later forks."""
        for name in names:
            if name not in sys.modules:
                with suppress(ImportError):  # the job that uses it reports it
                    if name.partition(".")[0] in BESIDE_TORCH:
                        import_module("stepline.backbones.torchvision").make_importable()
                    import_module(name)
        gc.freeze()

    def _end(self) -> NoReturn:
        """Kill the jobs, and remove the listener's leftovers."""
        running = {job.process for job in self.jobs.values()}
        for process in running:
            os.killpg(process, signal.SIGKILL)
        for process in running:
            os.waitpid(process, 0)
        with suppress(OSError):
            self.address.unlink()
            self.address.parent.rmdir()
        os._exit(0)


class _Fork:
    """The exit of a fork, which runs after all its other exit handlers."""

    def __init__(self) -> None:
        self.before: frozenset[str] | None = None
        self.names = 0
        self.code: object = None
        atexit.register(self.leave)

    def run(self, words: list[str], names: int) -> NoReturn:
        self.before, self.names = frozenset(sys.modules), names
        sys.argv[1:] = words
        try:
            runpy.run_module("stepline", run_name="__main__", alter_sys=True)
        except SystemExit as ended:
            self.code = ended.code
            raise
        sys.exit()

    def leave(self) -> None:
        """Record the imported modules; exit without the interpreter's slow teardown, unless an error must be shown."""
        if self.before is None:
            return
        new = [name for name, module in sys.modules.items() if name not in self.before and _lasting(name, module)]
        os.write(self.names, "\n".join(new).encode())
        if isinstance(self.code, int):
            with suppress(OSError):
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(self.code)


def _lasting(name: str, module: ModuleType) -> bool:
    found = getattr(module, "__spec__", None)
    if found is None or found.name != name or name.partition(".")[0] not in LEARNED:
        return False
    return str(found.origin).startswith(LASTING)


def main() -> None:
    """Serve jobs; in a fork, run the job."""
    fork = _Fork()
    os.environ["HF_HUB_OFFLINE"] = "1"  # jobs set it too, before they import libraries that read it
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # of forks, until their work begins
    with closing(socket.socket(fileno=int(sys.argv[1]))) as control:
        server = _Server(control, Path(sys.argv[2]))
        server.import_all(IMPORTED)
        words, names = server.serve()
    fork.run(words, names)


if __name__ == "__main__":
    main()

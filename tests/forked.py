"""Snakemake and its jobs, each forked from a process that has imported what they need, which takes longer than most do.

A run of Snakemake takes a file of ours for its Python, and so do the jobs that it starts: what stands there asks for a
job's fork, and waits; what decodes for a job is forked from it. Where Snakemake is started otherwise, all are started
as they are for users.
"""

import atexit
import gc
import marshal
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory

import stepline
from stepline.backbones.torchvision import make_importable
from stepline.config import validate
from stepline.media import headers, process
from stepline.plans import BENCHMARKS
from stepline.runs import record
from tests import reads, traces
from tests.fork_client import ask

ROOT = Path(__file__).parents[1]
IMPORTED = (
    *("snakemake.cli", "av", "cv2", "jinja2", "matplotlib.figure", "pyarrow.parquet", "scenedetect", "torch"),
    *("sklearn.feature_extraction.text", "transformers", "yt_dlp", "zarr"),
)


def run(
    module: str, arguments: Sequence[str], folder: Path, environment: dict[str, str], *, traced: bool = False
) -> subprocess.CompletedProcess[str]:
    """Return what became of ``python -m module`` with ``arguments``, and what it printed.

    traced: whether it fails where a job of Snakemake's reads what it does not declare; it then takes a third longer.
    """
    server = _server(traced)
    with TemporaryDirectory() as outputs:
        paths = [Path(outputs, name) for name in ("stdout", "stderr")]
        with open(os.devnull, "rb") as nothing, open(paths[0], "wb") as out, open(paths[1], "wb") as errors:
            files = [file.fileno() for file in (nothing, out, errors)]
            code = ask(str(server / "socket"), module, arguments, str(folder), environment, files)
        printed = [path.read_text(encoding="utf-8") for path in paths]
    if traced and (found := reads.undeclared(server, folder)):
        printed[1] += "\n".join(["", *found])
        code = code or 1
    return subprocess.CompletedProcess(arguments, code, *printed)


@cache
def programs() -> Path:
    """Return a folder with the programs ``stepline`` and ``snakemake``, which are forked too."""
    folder = _server(False)
    for module in ("stepline", "snakemake"):
        program = folder / module
        program.write_text(f'#!/bin/sh\nexec {folder}/python -m {module} "$@"\n')
        program.chmod(0o755)
    return folder


@cache
def _server(traced: bool) -> Path:
    """Return the folder with the socket of a server, which ends with this process, and with ``python``."""
    folder = TemporaryDirectory()
    python, address = Path(folder.name, "python"), Path(folder.name, "socket")
    client = f"import sys; sys.path.append({str(ROOT / 'tests')!r}); from fork_client import main"
    python.write_text(f"#!{sys.executable} -IS\n{client}; main({str(address)!r}, {sys.executable!r})\n")
    python.chmod(0o755)
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-c",
        f"from tests.forked import serve; serve({folder.name!r}, {traced})",
    ]
    before = traces.tracing(Path(folder.name)) if traced else []
    server = subprocess.Popen([*before, *command], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    atexit.register(folder.cleanup)
    atexit.register(server.kill)
    assert server.stdout is not None
    assert server.stdout.read(1) == b"!"
    return Path(folder.name)


def serve(folder: str, traced: bool) -> None:
    """Fork what is asked for, until the process that started this one has ended."""
    gc.disable()
    _prepare()
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]  # at each job's end 20 of torch's would take 40 ms
    gc.freeze()
    gc.set_threshold(20_000)
    gc.enable()
    threading.Thread(target=lambda: (os.read(0, 1), os._exit(0)), daemon=True).start()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/socket")
        listener.listen()
        os.write(1, b"!")
        while True:
            connection, _ = listener.accept()
            _, files, _, _ = socket.recv_fds(connection, 1, 3)
            asked = marshal.load(connection.makefile("rb"))
            if (job := os.fork()) == 0:
                break
            for file in files:
                os.close(file)
            threading.Thread(target=_keep, args=(connection, job), daemon=True).start()
    connection.close()
    for descriptor, file in enumerate(files):
        os.dup2(file, descriptor)
        os.close(file)
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    if asked["module"] == "snakemake":
        sys.executable = f"{folder}/python"
    else:
        os.environ.pop("STEPLINE_FORKSERVER", None)  # this is its fork
        os.environ["PATH"] = os.environ["PATH"].replace(folder, os.path.dirname(sys.executable))
        if traced:
            traces.mark(Path(folder), asked["arguments"])
        sys.path[1:1] = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    sys.argv = [asked["module"], *asked["arguments"]]
    code: object = 0
    try:
        runpy.run_module(asked["module"], run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
    for thread in threading.enumerate():
        if isinstance(thread, threading.Timer):
            thread.cancel()  # Snakemake's, for how many jobs it starts in a second: it would wait for their end
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _prepare() -> None:
    with suppress(ImportError):
        make_importable()
    ours = (module.name for module in walk_packages(stepline.__path__, "stepline."))
    for name in (*IMPORTED, *ours):
        if name != "stepline.__main__":
            with suppress(ImportError):
                import_module(name)
    import_module("snakemake.cli").get_argument_parser()  # looks for plug-ins in all that is installed
    for benchmark in BENCHMARKS:  # fills the caches that each job would fill
        benchmark.scoring_source()
        for kind in benchmark.kinds.values():
            if kind.method:
                benchmark.source(kind)
    record._commit()
    validate({})
    for extractor in import_module("yt_dlp.extractor").gen_extractor_classes():
        extractor.suitable("")  # compiles the patterns of its addresses
    for module in (headers, process):
        module.get_context = lambda _: get_context("fork")  # type: ignore[attr-defined]


def _keep(connection: socket.socket, job: int) -> None:
    """Send the job's exit code when it ends; where the one who waits for it is gone, the job is killed."""
    with connection, open(os.pidfd_open(job)) as ended:
        if ended not in select.select([connection, ended], [], [])[0]:
            os.kill(job, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(job, 0)[1])
        with suppress(OSError):
            connection.send(bytes([code if code >= 0 else 128 - code]))

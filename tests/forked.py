"""Runs of Snakemake, each in a process forked from one that has imported it: that saves two thirds of a start."""

import os
import subprocess
import sys
from collections.abc import Sequence
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

_SERVER = get_context("forkserver")
_SERVER.set_forkserver_preload(["snakemake.cli"])


def run(arguments: Sequence[str], folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Return what became of ``snakemake`` with ``arguments``, and what it printed."""
    with TemporaryDirectory() as outputs:
        paths = [Path(outputs, name) for name in ("stdout", "stderr")]
        process = _SERVER.Process(target=_main, args=(list(arguments), folder, environment, paths))
        process.start()
        process.join()
        printed = [path.read_text(encoding="utf-8") for path in paths]
    return subprocess.CompletedProcess(arguments, process.exitcode or 0, *printed)


def _main(arguments: list[str], folder: Path, environment: dict[str, str], outputs: list[Path]) -> None:
    from snakemake.cli import main

    for descriptor, path in enumerate(outputs, 1):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["snakemake", *arguments]
    main()

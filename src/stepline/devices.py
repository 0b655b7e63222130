"""The GPUs of this host, and which of them a process has.

Snakemake assigns none: jobs that share a host take leases. The workflow asks too: nothing heavy is imported.
"""

import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.errors import StoreError

if TYPE_CHECKING:
    from filelock import FileLock

GIVEN = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "CUDA_VISIBLE_DEVICES")
"""The variables by which a scheduler or a user gives a process GPUs."""
CPU = {"device": "cpu", "jobs_per_gpu": 1}
POLL_S = 1.0
PROC = Path("/proc/driver/nvidia/gpus")

log = logging.getLogger(__name__)
_held: list["FileLock"] = []


def visible() -> list[str]:
    """Return the GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them; all where it is unset."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is not None:
        names = [name.strip() for name in listed.split(",")]
        return names[: names.index("-1")] if "-1" in names else [name for name in names if name]
    return [str(number) for number in range(len(list(PROC.iterdir())) if PROC.is_dir() else 0)]


def wanted(device: str) -> bool:
    """Return whether jobs with networks ask for a GPU: under ``cuda``, and under ``auto`` where this host has one."""
    return device == "cuda" or (device == "auto" and bool(visible()))


def use(options: Mapping[str, Any], seen: Callable[[], bool]) -> str:
    """Return ``cpu`` or ``cuda``, where a network of this process is to run; it holds a GPU then until it ends.

    options: the configuration's ``features``. seen: whether the library that computes sees a GPU; it must not have
    looked before, as ``CUDA_VISIBLE_DEVICES`` is set here. Raises StoreError where it sees none and one is configured
    or was given to the process.
    """
    device = options["device"]
    if device == "cpu":
        return "cpu"
    given = [name for name in GIVEN if os.environ.get(name, "-1") not in ("", "-1")]
    if visible() and not _held:
        _lease(options["jobs_per_gpu"])
    if seen():
        return "cuda"
    if device == "cuda":
        raise StoreError("features.device is cuda, and no GPU can be used here: set it to auto or cpu")
    if given:
        raise StoreError(
            f"{given[0]} gives this process a GPU, which cannot be used: install a build with CUDA, or set "
            f"features.device to cpu"
        )
    log.info("there is no GPU here: networks run on the CPU")
    return "cpu"


def _lease(jobs: int) -> None:
    """Take one of the visible GPUs: wait until one of its ``jobs`` places is free, and make it the only visible one."""
    from filelock import FileLock, Timeout

    folder = _folder()
    told = False
    while True:
        for place, name in product(range(jobs), visible()):
            lock = FileLock(folder / f"{re.sub(r'[^A-Za-z0-9-]', '_', name)}.{place}.lock", mode=0o600)
            try:
                lock.acquire(blocking=False)
            except Timeout:
                continue
            _held.append(lock)
            os.environ["CUDA_VISIBLE_DEVICES"] = name
            return
        if not told:
            log.info("all GPUs are in use (%s): waiting for one", ", ".join(visible()))
            told = True
        time.sleep(POLL_S)


def _folder() -> Path:
    """Return the folder of this user's leases on this host; a Slurm job, whose GPUs are its own, has one for itself.

    Raises StoreError where it belongs to somebody else.
    """
    folder = Path(tempfile.gettempdir(), f"stepline-gpus-{os.getuid()}", os.environ.get("SLURM_JOB_ID", "host"))
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for each in (folder.parent, folder):
        if each.is_symlink() or each.stat().st_uid != os.getuid():
            raise StoreError(f"{each} belongs to another user: remove it, or set TMPDIR to a folder of your own")
    return folder

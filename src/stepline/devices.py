"""The GPUs of this host, and which of them a process has.

Snakemake counts GPUs and assigns none: the processes of a host take leases. The workflow asks too: nothing heavy is
imported.
"""

import logging
import os
import re
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.errors import StoreError

if TYPE_CHECKING:
    from filelock import FileLock

VISIBLE = "CUDA_VISIBLE_DEVICES"
GIVEN = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "NVIDIA_VISIBLE_DEVICES", VISIBLE)
"""The variables by which a scheduler, a container or a user gives a process GPUs."""
NONE = ("", "-1", "none", "void", "NoDevFiles")
"""What they hold where there are none."""
UNKNOWN = "all"
"""What images of containers set whether there are GPUs or not."""
CPU: Mapping[str, Any] = {"device": "cpu", "jobs_per_gpu": 1}
"""``features`` of a configuration by which networks run on the CPU."""
POLL_S = 1.0
NODES, DRIVER = Path("/dev"), Path("/proc/driver/nvidia/gpus")

log = logging.getLogger(__name__)
_held: list["FileLock"] = []


def visible() -> list[str]:
    """Return the GPUs that this process may use, as ``CUDA_VISIBLE_DEVICES`` names them: where it is unset, all.

    These are the device files, as a container has those of its own GPUs alone, or, before the first use of a driver
    that makes none, the GPUs that it lists.
    """
    listed = os.environ.get(VISIBLE)
    if listed is not None:
        names = [name.strip() for name in listed.split(",")]
        return names[: next((place for place, name in enumerate(names) if name in NONE), None)]
    count = len(list(NODES.glob("nvidia[0-9]*"))) or len(list(DRIVER.glob("*")))
    return [str(number) for number in range(count)]


def wanted(device: str) -> bool:
    """Return whether jobs with networks ask for a GPU: under ``cuda``, and under ``auto`` where this host has one.

    device: the configuration's ``features.device``.
    """
    return device == "cuda" or (device == "auto" and bool(visible()))


def use(options: Mapping[str, Any], seen: Callable[[], bool]) -> str:
    """Return ``cpu`` or ``cuda``, where a network of this process is to run; it has a GPU of its own until it ends.

    Waits while other processes have all of them. The log says what became of it. options: the configuration's
    ``features``. seen: whether the library that computes sees a GPU; it must not have looked before, as
    ``CUDA_VISIBLE_DEVICES`` is set here. Raises StoreError where it sees none, and one is configured or was given to
    the process.
    """
    if options["device"] == "cpu":
        return "cpu"
    if _held:
        return "cuda"
    given = [name for name in GIVEN if os.environ.get(name, "") not in (*NONE, UNKNOWN)]
    before, names = os.environ.get(VISIBLE), visible()
    if names:
        _lease(names, options["jobs_per_gpu"])
    if seen():
        log.info("networks run on %s", f"GPU {os.environ[VISIBLE]}" if names else "the GPU that is found")
        return "cuda"
    _give_back(before)
    if given:
        raise StoreError(
            f"{given[0]}={os.environ[given[0]]} gives this job a GPU, and networks cannot use it: see that "
            "`nvidia-smi` shows it and that torch was installed with CUDA, or set features.device to cpu"
        )
    if options["device"] == "cuda":
        raise StoreError("features.device is cuda, and no GPU can be used here: set it to auto or cpu")
    reason = f"GPU {', '.join(names)} cannot be used" if names else "there is no GPU here"
    log.info("%s: networks run on the CPU", reason)
    return "cpu"


def _lease(names: list[str], jobs: int) -> None:
    """Take one of the GPUs: wait until one of its ``jobs`` places is free, and make it the only visible one.

    The kernel releases the lock of a process that dies, however it does.
    """
    from filelock import FileLock, Timeout

    folder = _folder()
    job = os.environ.get("SLURM_JOB_ID", "host")  # Slurm numbers the GPUs of each job anew
    told = False
    while True:
        for place, name in product(range(jobs), names):
            key = re.sub(r"[^A-Za-z0-9.-]", "_", f"{job}.{name}.{place}")
            lock = FileLock(folder / f"{key}.lock", mode=0o666)
            with suppress(Timeout):
                lock.acquire(blocking=False)
                _held.append(lock)
                os.environ[VISIBLE] = name
                return
        if not told:
            log.info("all GPUs (%s) are in use by other jobs: waiting for one; locks: %s", ", ".join(names), folder)
            told = True
        time.sleep(POLL_S)


def _give_back(before: str | None) -> None:
    while _held:
        _held.pop().release()
    os.environ.pop(VISIBLE, None)
    if before is not None:
        os.environ[VISIBLE] = before


def _folder() -> Path:
    """Return the folder of leases, which all users of this host share, and no other host."""
    folder = Path(tempfile.gettempdir(), "stepline-gpus")
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o1777)
    return folder

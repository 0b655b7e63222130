"""The GPUs of this host, and their assignment to processes.

Snakemake counts GPUs but does not assign them, so the processes of a host take leases. The workflow imports this:
nothing heavy is imported.
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
from stepline.lock import acquire

if TYPE_CHECKING:
    from filelock import AcquireReturnProxy, FileLock

VISIBLE = "CUDA_VISIBLE_DEVICES"
GIVEN = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "NVIDIA_VISIBLE_DEVICES", VISIBLE)
"""The variables with which a scheduler, a container or a user assigns GPUs to a process."""
NONE = ("", "-1", "none", "void", "NoDevFiles")
"""Their values if no GPUs are assigned."""
UNKNOWN = "all"
"""The value that container images set whether or not there are GPUs."""
CPU: Mapping[str, Any] = {"device": "cpu", "jobs_per_gpu": 1}
"""The ``features`` of a configuration that runs networks on the CPU."""
POLL_S = 1.0
NODES, DRIVER = Path("/dev"), Path("/proc/driver/nvidia/gpus")

log = logging.getLogger(__name__)
_held: list["AcquireReturnProxy[FileLock]"] = []


def visible() -> list[str]:
    """Return the GPUs that this process may use: those in ``CUDA_VISIBLE_DEVICES`` or, if it is not set, all.

    All GPUs means those with device files, since a container has only the files of its own GPUs. If the driver has not
    created the files yet, it means the GPUs that the driver lists.
    """
    listed = os.environ.get(VISIBLE)
    if listed is not None:
        names = [name.strip() for name in listed.split(",")]
        return names[: next((place for place, name in enumerate(names) if name in NONE), None)]
    count = len(list(NODES.glob("nvidia[0-9]*"))) or len(list(DRIVER.glob("*")))
    return [str(number) for number in range(count)]


def wanted(device: str) -> bool:
    """Return whether jobs with networks request a GPU: for ``cuda``, and for ``auto`` if this host has one.

    device: the configuration's ``features.device``.
    """
    return device == "cuda" or (device == "auto" and bool(visible()))


def use(options: Mapping[str, Any], seen: Callable[[], bool]) -> str:
    """Return ``cpu`` or ``cuda``, the device for networks of this process; it leases a GPU until the process ends.

    Waits while all GPUs are leased to other processes. The choice is logged. options: the configuration's ``features``.
    seen: returns whether the computing library sees a GPU. The library must not have queried GPUs before, as
    ``CUDA_VISIBLE_DEVICES`` is set here. Raises StoreError if it sees none, although one is configured or was assigned
    to the process.
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
        log.info("networks run on %s", f"GPU {os.environ[VISIBLE]}" if names else "the detected GPU")
        return "cuda"
    _give_back(before)
    if given:
        raise StoreError(
            f"{given[0]}={os.environ[given[0]]} assigns a GPU to this job, but networks cannot use it: check that "
            "`nvidia-smi` lists it and that torch was installed with CUDA, or set features.device to cpu"
        )
    if options["device"] == "cuda":
        raise StoreError("features.device is cuda, but no GPU is usable here: set it to auto or cpu")
    reason = f"GPU {', '.join(names)} cannot be used" if names else "there is no GPU here"
    log.info("%s: networks run on the CPU", reason)
    return "cpu"


def _lease(names: list[str], jobs: int) -> None:
    """Lease a GPU: wait until one of its ``jobs`` places is free, and make it the only visible GPU.

    The kernel releases the lock if the process dies for whatever reason.
    """
    from filelock import Timeout

    folder = _folder()
    job = os.environ.get("SLURM_JOB_ID", "host")  # Slurm numbers the GPUs of each job from 0
    told = False
    while True:
        for place, name in product(range(jobs), names):
            key = re.sub(r"[^A-Za-z0-9.-]", "_", f"{job}.{name}.{place}")
            with suppress(Timeout):
                _held.append(acquire(folder / f"{key}.lock", timeout=0, mode=0o666))
                os.environ[VISIBLE] = name
                return
        if not told:
            log.info("all GPUs (%s) are in use by other jobs: waiting for one; locks: %s", ", ".join(names), folder)
            told = True
        time.sleep(POLL_S)


def _give_back(before: str | None) -> None:
    while _held:
        _held.pop().lock.release()
    os.environ.pop(VISIBLE, None)
    if before is not None:
        os.environ[VISIBLE] = before


def _folder() -> Path:
    """Return the folder of leases, which all users of this host share, but no other hosts."""
    folder = Path(tempfile.gettempdir(), "stepline-gpus")
    with suppress(FileExistsError):
        folder.mkdir()
        folder.chmod(0o1777)
    return folder

"""Which jobs run, and how far they say that they are."""

import fcntl
import os
from dataclasses import dataclass
from pathlib import Path

from stepline.errors import SteplineError
from stepline.io import read_json
from stepline.overview.graph import Job
from stepline.progress import record_of


@dataclass(frozen=True)
class Progress:
    """How far a running job is in what it does now. what: "" where it does not say. total: 0 where it is not known."""

    what: str = ""
    unit: str = ""
    done: float = 0.0
    total: float = 0.0

    def __str__(self) -> str:
        """Return it in words; "" where the job does not say."""
        total = f" of {self.total:.0f}" if self.total else ""
        return f"{self.what}: {self.done:.0f}{total} {self.unit}" if self.what else ""

    @property
    def left(self) -> float:
        """The share that is left; 1 where it is not known."""
        return max(0.0, 1 - self.done / self.total) if self.total else 1.0


def progress(job: Job) -> Progress | None:
    """Return how far a job is, see ``stepline.progress``; None where no process holds the lock of its log."""
    if not held(Path(job.log)):
        return None
    try:
        said = read_json(record_of(job.log))
        return Progress(said["what"], said["unit"], said["done"], said["total"] or 0.0)
    except (OSError, SteplineError, KeyError, TypeError):  # removed meanwhile, or of another version
        return Progress()


def held(lock: Path) -> bool:
    """Return whether a process holds a lock for itself alone."""
    try:
        descriptor = os.open(lock, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:  # a file system without locks
        return False
    finally:
        os.close(descriptor)
    return False

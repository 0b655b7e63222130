"""The stages of a run: their rules and their progress."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.availability import read_availability
from stepline.errors import SteplineError
from stepline.progress import record_of

BY_LENGTH = {"media", "shots", "transcribe", "extract", "thumbnails"}
"""Rules whose run time depends on the length of a shard's videos."""
SHOWN_AFTER_S = 5
"""The time after which the remaining time is shown."""


@dataclass(frozen=True)
class Job:
    """A job that was started. message: describes it. video_s: the length of its videos; 0 if unknown."""

    rule: str
    message: str
    log: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    video_s: float
    began: float = field(default_factory=time.time)

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Job":
        """Return the job of Snakemake's event JOB_INFO."""
        rule, of = said["rule_name"], said["wildcards"]
        video_s = seconds_of(of["dataset"], of["shard"]) if rule in BY_LENGTH else 0.0
        log = next(iter(said["log"]), "")
        return cls(rule, said["rule_msg"] or rule, log, said["input"], said["output"], video_s)

    def written(self) -> list[str]:
        """Return the lines of its log; none if the job has not begun, since the log may be an earlier attempt's."""
        log = Path(self.log)
        try:
            began = log.stat().st_mtime >= self.began - 1
            return log.read_text(encoding="utf-8", errors="replace").splitlines() if began else []
        except OSError:
            return []

    def error(self) -> str:
        """Return the last error in its log; "" if there is none."""
        errors = [error for line in self.written() if (error := line.partition(" ERROR ")[2])]
        return errors[-1].removeprefix("error: ") if errors else ""

    def did(self) -> str:
        """Return what it did last, by its log."""
        last = self.written()[-1]
        return last.partition(" INFO ")[2] or last

    def share(self) -> float:
        """Return the fraction of the job that is done, in [0, 1], from its own progress record."""
        if not self.log.startswith("logs/"):
            return 0.0
        record = record_of(self.log)
        try:
            if record.stat().st_mtime < self.began - 1:  # left by a job that was killed
                return 0.0
            said = json.loads(record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return 0.0
        return min(1.0, said["done"] / said["total"]) if said["total"] else 0.0


@cache
def seconds_of(dataset: str, shard: str) -> float:
    """Return how many seconds of a shard's videos are read; 0 if the shard's record does not exist."""
    try:
        records = read_availability(paths.availability(dataset, shard))
    except (OSError, SteplineError):
        return 0.0
    return sum(record.seen_s for record in records.values())


@dataclass
class Stage:
    """The jobs of a stage. total: the number of them in this run."""

    name: str
    total: int
    running: dict[int, Job] = field(default_factory=dict)
    done: int = 0
    failed: int = 0
    _of_ended_s: float = 0.0
    _began: float = field(default_factory=time.monotonic)

    @property
    def ended(self) -> bool:
        """Return whether all its jobs have ended."""
        return self.done + self.failed >= self.total

    def start(self, number: int, job: Job, *, again: bool) -> None:
        """Count a job as running. again: whether it is a retry."""
        self.running[number] = job
        self.failed -= again

    def end(self, number: int, *, failed: bool) -> None:
        """Count a running job as ended."""
        job = self.running.pop(number, None)
        if job is None:
            return
        if failed:
            self.failed += 1
        else:
            self.done += 1
            self._of_ended_s += job.video_s

    def line(self) -> str:
        """Return the line that shows its progress."""
        elapsed_s = time.monotonic() - self._began
        shares = {number: job.share() for number, job in self.running.items()}
        started_s = self._of_ended_s + sum(job.video_s for job in self.running.values())
        seen_s = self._of_ended_s + sum(self.running[number].video_s * share for number, share in shares.items())
        all_started = self.done + self.failed + len(self.running) >= self.total
        parts = [f"{self.done}/{jobs(self.total)}"]
        if self.failed:
            parts[0] += f", {self.failed} failed"
        if started_s:
            of_all = f" of {duration(started_s)}" if all_started and not self.ended else ""
            parts.append(f"{duration(seen_s)}{of_all} of video")
            if seen_s and elapsed_s >= 1:
                parts.append(f"{seen_s / elapsed_s:.3g} x real time")
        share = (self.done + sum(shares.values())) / self.total
        if started_s and all_started:
            share = seen_s / started_s
        if self.ended:
            parts.append(f"took {duration(elapsed_s)}")
        elif share > 0 and elapsed_s >= SHOWN_AFTER_S:
            parts.append(f"{duration(elapsed_s * (1 - share) / share)} left")
        return f"{self.name:<18} {', '.join(parts)}"


def jobs(number: int) -> str:
    """Return a number of jobs as text."""
    return f"{number} job{'' if number == 1 else 's'}"


def duration(seconds_s: float) -> str:
    """Return seconds as ``h:mm:ss``."""
    return str(timedelta(seconds=round(seconds_s)))

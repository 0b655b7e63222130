"""One run: its stages, their lines on the screen, and its end."""

import asyncio
import os
import signal
import threading
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from types import FrameType
from typing import Any, TextIO

from snakemake_logger_plugin_stepline import ending
from snakemake_logger_plugin_stepline.cluster import End
from snakemake_logger_plugin_stepline.ending import Failed
from snakemake_logger_plugin_stepline.reasons import in_words
from snakemake_logger_plugin_stepline.screen import Screen
from snakemake_logger_plugin_stepline.stages import Job, Stage, duration, jobs
from stepline.progress import stage_of

REDRAWN_S = 1.0
INTERRUPTED_AGAIN_S = 0.05
UNINTERRUPTED = {
    function.__code__ for function in (asyncio.BaseEventLoop.run_forever, ThreadPoolExecutor.submit, Screen.catch)
}
"""An interrupt waits for these. Otherwise a loop could not be closed, a job would outlive the run, or lines be lost."""


class Run:
    """The state of a run, from Snakemake's events.

    interrupted: whether the user has interrupted it. log: the path of Snakemake's log file.
    """

    def __init__(self, stream: TextIO, *, dry: bool, touch: bool = False) -> None:
        """Print nothing yet. touch: whether the run only renews the times of existing files (``--touch``)."""
        self.screen, self.dry, self._touch = Screen(stream), dry, touch
        self.interrupted = False
        self.log = ""
        self._stages: dict[str, Stage] = {}
        self._totals: Counter[str] = Counter()
        self._jobs: dict[int, Job] = {}
        self._made: list[Job] = []
        self._touched: list[Job] = []
        self._failed: dict[int, Failed] = {}
        self._by_interrupt: set[int] = set()
        self._reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._began = time.monotonic()
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._interrupt)
        self._lock = threading.Lock()
        self._over = threading.Event()

    @property
    def failed(self) -> bool:
        """Return whether a job failed."""
        return bool(self._failed)

    def plan(self, stats: Mapping[str, int]) -> None:
        """Set the number of jobs of each rule."""
        self._totals = Counter()
        for rule, number in stats.items():
            if rule not in ("all", "total"):
                self._totals[stage_of(rule)] += number

    def start(self, said: Mapping[str, Any]) -> None:
        """Add a job that starts, or would start in a dry run. said: Snakemake's event."""
        rule, number = said["rule_name"], said["jobid"]
        name = stage_of(rule)
        if rule == "all":
            return
        if self.dry:
            self._reasons[name][in_words(rule, said["reason"])] += 1
            return
        if self._touch:
            self._touched.append(Job.of(said))
            return
        if not self._stages and self.screen.live:
            self.screen.catch()
            threading.Thread(target=self._redraw, name="stages", daemon=True).start()
        with self._lock:
            self._jobs[number] = job = Job.of(said)
            if name not in self._stages:
                self._stages[name] = Stage(name, self._totals[name])
                if not self.screen.live:
                    self.screen.say(f"{name:<18} {jobs(self._totals[name])}")
            self._stages[name].start(number, job, again=self._failed.pop(number, None) is not None)
            self._show()

    def finish(self, number: int) -> None:
        """Count a job as done."""
        if number in self._jobs:
            self._made.append(self._jobs[number])
            self._end(number, failed=False)

    def fail(self, said: Mapping[str, Any], *, by_interrupt: bool = False) -> None:
        """Count a job as failed; one that an interrupt ended, only until the user's interrupt of the run is known.

        said: Snakemake's event.
        """
        number = said["jobid"]
        if not self.interrupted and number in self._jobs:
            self._failed[number] = Failed(self._jobs[number], End.of(said))
            self._by_interrupt |= {number} if by_interrupt else set()
            self._end(number, failed=True)

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Handle the user's interrupt: jobs that end because of it do not count as failed.

        A second one reaches only the jobs, and Snakemake waits until they end.
        """
        self.interrupted = self.screen.muted = True
        if UNINTERRUPTED.isdisjoint(running.f_code for running, _ in traceback.walk_stack(frame)):
            signal.signal(number, lambda *_: None)
            raise KeyboardInterrupt
        main = threading.main_thread().ident
        assert main is not None
        again = threading.Timer(INTERRUPTED_AGAIN_S, signal.pthread_kill, (main, number))
        again.daemon = True
        again.start()

    def _end(self, number: int, *, failed: bool) -> None:
        with self._lock:
            stage = self._stages[stage_of(self._jobs[number].rule)]
            stage.end(number, failed=failed)
            if stage.ended:
                self.screen.say(stage.line())
            self._show()

    def _redraw(self) -> None:
        while not self._over.wait(REDRAWN_S):
            with self._lock:
                self._show()

    def _show(self) -> None:
        if self.screen.live and not self._over.is_set():
            self.screen.show([stage.line() for stage in self._stages.values() if stage.running])

    def end(self) -> None:
        """Print the end of the run. Then an interrupt is ignored: Snakemake ends within a second or two."""
        if signal.getsignal(signal.SIGINT) == self._interrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        with self._lock:
            self._over.set()
        self.screen.close()
        if self._touched:
            there = sum(any(map(os.path.exists, job.outputs)) for job in self._touched)
            self.screen.say(f"nothing was computed; {there} of {jobs(len(self._touched))} have files, now up to date")
        for line in self._planned() if self.dry else self._ending():
            self.screen.say(line)

    def _planned(self) -> Iterator[str]:
        if not self._reasons:
            return
        yield f"{'stage':<18} {'jobs':>5}  reason"
        for name, reasons in self._reasons.items():
            told = [reason if len(reasons) == 1 else f"{n} x {reason}" for reason, n in reasons.most_common()]
            yield f"{name:<18} {reasons.total():>5}  {'; '.join(told)}"
        total = sum(reasons.total() for reasons in self._reasons.values())
        yield f"dry run: nothing was computed; without -n, {jobs(total)} would run"

    def _ending(self) -> Iterator[str]:
        if not self._jobs:
            return
        names = [job.message for stage in self._stages.values() for job in stage.running.values()]
        if self.interrupted:
            names += [
                self._failed.pop(number).job.message for number in sorted(self._by_interrupt & self._failed.keys())
            ]
        done = f"{len(self._made)} of {jobs(self._totals.total())} done"
        took = duration(time.monotonic() - self._began)
        if self.interrupted:
            yield f"interrupted after {took}: {done}; not finished: {'; '.join(ending.some(names)) or 'none'}"
        else:
            yield f"{done} in {took}"
        if made := [*ending.made(self._made)]:
            yield "made:"
            yield from made
        yield from ending.of_videos(self._jobs.values())
        if self._failed:
            yield f"failed: {jobs(len(self._failed))}"
            yield from ending.failures(self._failed.values())
            yield f"Snakemake's own messages: {self.log}"
        if self._failed or self.interrupted:
            yield "finished work is kept; the same command continues from there"

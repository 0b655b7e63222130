"""A logger plugin of Snakemake: a line for each stage, and at the end what was made, where, and what failed.

Nothing else of Stepline's packages knows Snakemake. The Snakefile puts it in the place of Snakemake's own output on
the terminal (``attach``); Snakemake's log file has all of that output.
"""

import logging
import sys
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_stepline import ending
from snakemake_logger_plugin_stepline.reasons import in_words
from snakemake_logger_plugin_stepline.screen import Screen
from snakemake_logger_plugin_stepline.stages import Job, Stage, duration, stage_of

if TYPE_CHECKING:
    from snakemake.logging import LoggerManager  # type: ignore[import-untyped]

REDRAWN_S = 1.0
INTERRUPTED = "Terminating processes on user request"
UNSAID = (
    "Building DAG of jobs",
    "Complete log(s):",
    "Conda environments: ignored",
    "Elapsed time:",
    "Exiting because a job execution failed",
    "Group jobs: inactive",
    "If you are sure that a change",
    "If you prefer that only modification time",
    "Reasons:",
    "Rules with ",
    "Select jobs to execute",
    "Shutting down",
    "Some jobs were triggered by provenance",
    "Singularity containers: ignored",
    "This was a dry-run",
    "Using shell:",
)
"""How messages begin whose content is said otherwise, or says nothing."""
OF_RUNS = "RuleException", "WorkflowError"
"""Exceptions that only repeat which jobs failed, once a job did."""


class LogHandler(LogHandlerBase):
    """Writes to standard error, of a dry run to standard output."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        """Say nothing yet."""
        self._screen = Screen(sys.stdout if self.common_settings.stdout else sys.stderr)
        self._stages: dict[str, Stage] = {}
        self._totals: Counter[str] = Counter()
        self._jobs: dict[int, Job] = {}
        self._made: list[Job] = []
        self._failed: dict[int, Job] = {}
        self._reasons: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._interrupted = False
        self._began = time.monotonic()
        self._logfile = ""
        self._over = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        """Take one of Snakemake's messages."""
        said = record.__dict__
        of: dict[Any, Callable[[dict[str, Any]], None]] = {
            LogEvent.RUN_INFO: self._plan,
            LogEvent.JOB_INFO: self._start,
            LogEvent.JOB_FINISHED: self._finish,
            LogEvent.JOB_ERROR: self._fail,
            LogEvent.ERROR: self._error,
            None: self._message,
        }
        if take := of.get(said.get("event")):
            take(said)

    def _plan(self, said: dict[str, Any]) -> None:
        self._totals = Counter()
        for rule, jobs in said["stats"].items():
            if rule not in ("all", "total"):
                self._totals[stage_of(rule)] += jobs

    def _start(self, said: dict[str, Any]) -> None:
        rule, number = said["rule_name"], said["jobid"]
        if rule == "all":
            return
        name = stage_of(rule)
        if self.common_settings.dryrun:
            self._reasons[name][in_words(rule, said["reason"])] += 1
            return
        self._jobs[number] = job = Job.of(said)
        if self._failed.pop(number, None):  # another attempt
            self._stages[name].failed -= 1
        if not self._stages and self._screen.live:
            self._screen.catch()
            threading.Thread(target=self._redraw, name="progress", daemon=True).start()
        if name not in self._stages:
            self._stages[name] = Stage(name, max(1, self._totals[name]))
            if not self._screen.live:
                self._screen.say(f"{name:<18} {self._totals[name]} {'job' if self._totals[name] == 1 else 'jobs'}")
        stage = self._stages[name]
        stage.running[number] = job
        self._show()

    def _finish(self, said: dict[str, Any]) -> None:
        if job := self._jobs.get(said["job_id"]):
            self._made.append(job)
            self._end(said["job_id"], failed=False)

    def _fail(self, said: dict[str, Any]) -> None:
        if not self._interrupted and (job := self._jobs.get(said["jobid"])):
            self._failed[said["jobid"]] = job
            self._end(said["jobid"], failed=True)

    def _end(self, number: int, *, failed: bool) -> None:
        stage = self._stages[stage_of(self._jobs[number].rule)]
        if number in stage.running:
            stage.end(number, failed=failed)
            if stage.ended:
                self._screen.say(stage.line())
        self._show()

    def _error(self, said: dict[str, Any]) -> None:
        told = self._failed or self._interrupted
        if said.get("exception") == "RuleException" and "CalledProcessError" in str(said["msg"]):
            return  # the job's own event follows
        if not (told and said.get("exception") in OF_RUNS):
            self._screen.say(str(said["msg"]))

    def _message(self, said: dict[str, Any]) -> None:
        text = str(said["msg"] or "")
        if text.startswith(INTERRUPTED):
            self._interrupted = True
        elif text.startswith("Complete log(s):"):
            self._logfile = text.partition(": ")[2]
        elif said["levelno"] > logging.DEBUG and text.strip() and not text.startswith(UNSAID):
            self._screen.say(text)

    def _redraw(self) -> None:
        while not self._over.wait(REDRAWN_S):
            with self.lock:  # type: ignore[union-attr]
                self._show()

    def _show(self) -> None:
        if self._screen.live and not self._over.is_set():
            self._screen.show([stage.line() for stage in self._stages.values() if stage.running])

    def close(self) -> None:
        """Say what became of the run."""
        if not self._over.is_set():
            self._over.set()
            self._screen.close()
            for line in self._dry() if self.common_settings.dryrun else self._ending():
                self._screen.say(line)
        super().close()

    def _dry(self) -> Iterator[str]:
        if self._reasons:
            yield f"{'stage':<18} {'jobs':>5}  reason"
            for name, reasons in self._reasons.items():
                told = [reason if len(reasons) == 1 else f"{n} x {reason}" for reason, n in reasons.most_common()]
                yield f"{name:<18} {reasons.total():>5}  {'; '.join(told)}"
            jobs = sum(reasons.total() for reasons in self._reasons.values())
            yield f"dry run: {jobs} jobs would run; without -n they do"

    def _ending(self) -> Iterator[str]:
        if not self._jobs:
            return
        names = [job.message for stage in self._stages.values() for job in stage.running.values()]
        done = f"{len(self._made)} of {self._totals.total()} jobs done"
        yield ""
        took = duration(time.monotonic() - self._began)
        if self._interrupted:
            yield f"interrupted after {took}: {done}; not finished: {'; '.join(ending.some(names)) or 'none'}"
        else:
            yield f"{done} in {took}"
        if lines := [*ending.made(self._made)]:
            yield "made:"
            yield from lines
        yield from ending.of_videos(self._jobs.values())
        if self._failed:
            yield f"failed: {len(self._failed)} {'job' if len(self._failed) == 1 else 'jobs'}"
            yield from ending.failures(self._failed.values())
            yield f"Snakemake's own messages: {self._logfile}"
        if self._failed or self._interrupted:
            yield "finished work is kept; the same command goes on from there"


def attach(manager: "LoggerManager") -> None:
    """Have a run print lines of stages, unless another logger or an option asks for more, or for less.

    Options that ask for Snakemake's own output are ``--printshellcmds``, ``--verbose``, ``--debug-dag``,
    ``--show-failed-logs`` and ``--quiet``.
    """
    asked = manager.settings
    own = (asked.printshellcmds, asked.verbose, asked.debug_dag, asked.show_failed_logs, asked.quiet)
    for handler in [*manager.logger.handlers]:
        if handler.name == "DefaultStreamHandler" and not any(own):
            manager.logger.removeHandler(handler)
            manager.logger.addHandler(LogHandler(asked, None))

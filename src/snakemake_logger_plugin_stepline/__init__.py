"""A logger plugin of Snakemake: a line for each stage, and at the end the results and the failures.

The Snakefile replaces Snakemake's own output on the terminal with it (``attach``); Snakemake's log file still contains
everything. ``stepline`` itself does not depend on Snakemake. Modules that a run without jobs does not need are imported
lazily.
"""

import logging
import signal
import sys
from functools import cached_property
from typing import TYPE_CHECKING

from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from snakemake_logger_plugin_stepline.errors import in_one_line, of_configfile

if TYPE_CHECKING:
    from types import TracebackType

    from snakemake.workflow import Workflow  # type: ignore[import-untyped]

    from snakemake_logger_plugin_stepline.run import Run

LOGGED = "Complete log(s): "
UNSAID = (
    "Building DAG of jobs",
    "Conda environments: ignored",
    "Elapsed time:",
    "Exception in run_job",
    "Exiting because a job execution failed",
    "Group jobs: inactive",
    "Output files not touched",
    "Reasons:",
    "Rules with provenance triggered jobs",
    "Select jobs to execute",
    "Shutting down",
    "Singularity containers: ignored",
    "Some jobs were triggered by provenance",
    "Terminating processes on user request",
    "This was a dry-run",
    "Using shell:",
)
"""Prefixes of messages that are redundant or uninformative."""
BY_INTERRUPT = "died with <Signals.SIGINT: 2>.", "returned non-zero exit status 130."
"""The ends of messages on jobs that an interrupt ended: the shell dies of it too, or returns the job's exit code."""
REPEATED = "RuleException", "WorkflowError"
"""Exceptions that, after a job has failed, only repeat the names of the failed jobs."""


# Snakemake reads the files of --configfile after it has imported its plugins, and before any Snakefile.
logging.getLogger("snakemake.logging").addFilter(of_configfile)
logging.raiseExceptions = False  # errors of logging, as on a full disk, are ignored


def _uncaught(kind: type[BaseException], error: BaseException, trace: "TracebackType | None") -> None:
    """Print one line if the user interrupts Snakemake while it runs no jobs; otherwise the usual traceback."""
    if issubclass(kind, KeyboardInterrupt):
        print("interrupted: finished work is kept; the same command continues from there", file=sys.stderr)
    else:
        sys.__excepthook__(kind, error, trace)


sys.excepthook = _uncaught
if callable(signal.getsignal(signal.SIGINT)):  # that of snakemake_logger_plugin_stepline.pth, for Snakemake's imports
    signal.signal(signal.SIGINT, signal.default_int_handler)


class LogHandler(LogHandlerBase):
    """Writes to standard error, or to standard output in a dry run."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False
    workflow: "Workflow | None" = None
    _by_interrupt = False
    _closed = False

    @cached_property
    def _run(self) -> "Run":
        from snakemake_logger_plugin_stepline.run import Run

        stream = sys.stdout if self.common_settings.stdout else sys.stderr
        return Run(stream, dry=self.common_settings.dryrun, touch=self.workflow is not None and self.workflow.touch)

    def emit(self, record: logging.LogRecord) -> None:
        """Handle one of Snakemake's messages."""
        said = record.__dict__
        match said.get("event"):
            case None:
                self._message(record.levelno, str(record.msg or "").rstrip())
            case LogEvent.RUN_INFO:
                self._run.plan(said["stats"])
            case LogEvent.JOB_INFO:
                self._run.start(said)
            case LogEvent.JOB_FINISHED:
                self._run.finish(said["job_id"])
            case LogEvent.JOB_ERROR:
                self._run.fail(said, by_interrupt=self._by_interrupt)
            case LogEvent.ERROR:
                self._error(said["exception"], str(record.msg))

    def _message(self, level: int, text: str) -> None:
        if text.startswith(LOGGED):
            self._run.log = text.removeprefix(LOGGED)
        elif level > logging.DEBUG and text and not text.startswith(UNSAID):
            self._say(text)

    def _error(self, exception: str, text: str) -> None:
        of_job = exception == "RuleException" and "CalledProcessError" in text  # the job's own event follows
        self._by_interrupt = of_job and text.rstrip().endswith(BY_INTERRUPT)
        if not (of_job or self._run.interrupted or (exception in REPEATED and self._run.failed)):
            self._say(in_one_line(sys.exc_info()[1], self.workflow) or text)

    def _say(self, text: str) -> None:
        from stepline.printable import printable

        for line in text.split("\n"):
            if "_run" in self.__dict__:
                self._run.screen.say(line)
            else:
                print(printable(line), file=sys.stdout if self.common_settings.stdout else sys.stderr, flush=True)

    def close(self) -> None:
        """Print the end of the run."""
        if "_run" in self.__dict__ and not self._closed:
            self._closed = True
            self._run.end()
        super().close()


def attach(workflow: "Workflow") -> None:
    """Make a run print lines of stages, unless it has another logger or an option for Snakemake's own output.

    These options are ``--printshellcmds``, ``--verbose``, ``--debug-dag``, ``--show-failed-logs`` and ``--quiet``.
    """
    manager = workflow.logger_manager
    asked = manager.settings
    own = (asked.printshellcmds, asked.verbose, asked.debug_dag, asked.show_failed_logs, asked.quiet)
    for handler in [*manager.logger.handlers]:
        if handler.name == "DefaultStreamHandler" and not any(own):
            manager.logger.removeHandler(handler)
            manager.logger.addHandler(ours := LogHandler(asked, None))
            ours.workflow = workflow

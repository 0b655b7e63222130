"""One line for an error that the user can mend, in place of Snakemake's exceptions.

Snakemake imports this module before any Snakefile, and a Snakefile chooses which ``stepline`` it uses: that beside it.
"""

import logging
import re
import sys
from traceback import walk_tb
from typing import TYPE_CHECKING

from snakemake_interface_logger_plugins.common import LogEvent

if TYPE_CHECKING:
    from snakemake.workflow import Workflow  # type: ignore[import-untyped]


def in_one_line(error: BaseException | None, workflow: "Workflow | None") -> str:
    """Return the line for an error of the package or of a file, or a target that no job writes; "" for other errors."""
    from stepline.errors import SteplineError, in_words

    while error is not None:
        if isinstance(error, SteplineError):
            return f"error: {error}"
        if isinstance(error, OSError) and error.errno:
            return f"error: {in_words(error)}"
        if workflow and (target := re.match(r"No rule to produce (.+) \(if you use", str(error))):
            return _no_job(target[1], workflow)
        error = error.__cause__ or error.__context__
    return ""


def _no_job(target: str, workflow: "Workflow") -> str:
    from stepline.errors import SteplineError
    from stepline.overview.graph import Graph

    try:
        files = Graph(workflow.globals["config"], [target]).targets
    except SteplineError as error:
        return f"error: {error}"
    if files == [target]:
        return f"error: no job writes {target}: name a result of this work folder"
    return f"error: {target} is a name, not a file: name files, such as {' '.join(files[:3])}"


def of_configfile(record: logging.LogRecord) -> bool:
    """Replace the message on a configuration file that Snakemake cannot read by one line. A filter of its logger."""
    error = sys.exc_info()[1]
    if error is not None and vars(record).get("event") is LogEvent.ERROR:
        for frame, _ in walk_tb(error.__traceback__):
            if frame.f_code.co_name == "load_configfile":
                record.msg = _unread(str(frame.f_locals["configpath"])) or record.msg
    return True


def _unread(file: str) -> str:
    from stepline.config import load
    from stepline.errors import SteplineError

    if not file.endswith((".yaml", ".yml", ".json")):
        return f"error: --configfile takes {file} for a configuration: write targets before --configfile, or after `--`"
    try:
        load(file)
    except SteplineError as error:
        return f"error: {error}"
    except OSError as error:
        return f"error: {file}: {error.strerror}: name a file that this account can read with --configfile"
    return ""

"""The parser of the command line: grouped verbs for users, and stages that the workflow calls."""

import argparse
import re
from difflib import get_close_matches
from pathlib import Path
from textwrap import fill
from typing import Any

from stepline import __version__
from stepline.cli import (
    accept,
    bank,
    demo,
    doctor,
    explain,
    fetch,
    gc,
    plan,
    report,
    search,
    show,
    specs,
    stages,
    status,
    studies,
    weights,
)
from stepline.plans import BENCHMARKS

GROUPS = {
    "videos and results": (
        demo.add,
        fetch.add,
        show.add,
        plan.add,
        status.add,
        search.add,
        report.add,
        explain.add,
    ),
    "work folder": (doctor.add, gc.add),
    "features and networks": (bank.add, specs.add, weights.add),
    "benchmarks": (accept.add, *(each.add_verbs for each in BENCHMARKS)),
}
"""The functions that add the verbs of each group, in the order of the help text."""
STAGES = stages.add, studies.add


OPTION = re.compile("-h|--[a-z][a-z-]*(=.*)?", re.DOTALL)
"""The form of an option. Any other word that begins with a dash is a name, such as the id of a video on YouTube."""


class Parser(argparse.ArgumentParser):
    """A parser that accepts names with a leading dash, and suggests the nearest verb or option for an unknown one."""

    def _parse_optional(self, arg_string: str) -> Any:
        if not OPTION.fullmatch(arg_string):
            return None
        name = arg_string.partition("=")[0]
        if not self._subparsers and not any(known.startswith(name) for known in self._option_string_actions):
            near = get_close_matches(name, self._option_string_actions, n=1)
            hint = f"did you mean {near[0]}?" if near else "write a name after `--`, or as `--OPTION=NAME`"
            self.exit(2, f"error: `{self.prog}` has no option {name}: {hint}\n")
        return super()._parse_optional(arg_string)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if not isinstance(action, argparse._SubParsersAction) or value in action.choices:
            super()._check_value(action, value)
            return
        near = get_close_matches(value, action.choices, n=1)
        hint = f"did you mean `{self.prog} {near[0]}`?" if near else f"`{self.prog} --help` lists them"
        kind = "verb" if action.dest == "verb" else "action"
        self.exit(2, f"error: {kind} {value!r} is not known: {hint}\n")


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all verbs. A verb without ``help`` is a stage that the workflow calls."""
    made: argparse.ArgumentParser = Parser(prog="stepline", formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--version", action="version", version=f"stepline {__version__}", help="print the version")
    made.add_argument("--log", type=Path, metavar="FILE", help="also write warnings and errors to this file")
    made.add_argument(
        "--configfile",
        type=Path,
        metavar="FILE",
        help="default: $STEPLINE_CONFIG, the configuration of the last run here, or config.yaml",
    )
    verbs = made.add_subparsers(dest="verb", metavar="VERB", help=argparse.SUPPRESS)
    made.usage = "%(prog)s [--log FILE] [--configfile FILE] VERB ..."
    lines = [
        "From raw procedural video to the tables of five papers. `snakemake` computes",
        "the configured results; these verbs prepare, show and check them.",
    ]
    shown = verbs._get_subactions
    for add in STAGES:
        add(verbs)
    for title, adds in GROUPS.items():
        known = len(shown())
        for add in adds:
            add(verbs)
        lines += ["", f"{title}:", *(f"  {action.dest:10}  {action.help}" for action in shown()[known:])]
    names = {action.dest: action.help for action in shown()}
    stages = " ".join(name for name in verbs.choices if name not in names)
    lines += [
        "",
        "stages, which the workflow calls (`stepline STAGE --help`):",
        fill(stages, 78, initial_indent="  ", subsequent_indent="  "),
    ]
    made.description = "\n".join(lines)
    for name, text in names.items():
        verbs.choices[name].description = text
    return made

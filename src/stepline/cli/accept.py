"""The verb `accept`: a change of source that leaves the numbers as they are."""

import argparse
from typing import TYPE_CHECKING

from stepline.config import load
from stepline.plans import benchmark

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("accept", help="record that a change of source leaves the numbers as they are")
    verb.add_argument("study")
    verb.add_argument("what", help="a kind of the benchmark, or scores")
    verb.set_defaults(run=_accept)


def _accept(parsed: argparse.Namespace) -> None:
    from stepline.runs.accept import accept

    found = accept(benchmark(load(parsed.configfile), parsed.study), parsed.study, parsed.what)
    print(f"{parsed.study}: {found} files of {parsed.what!r} accepted")

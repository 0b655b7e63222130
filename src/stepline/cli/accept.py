"""The verb `accept`: records that a source change does not change the numbers."""

import argparse
from typing import TYPE_CHECKING

from stepline.config import load
from stepline.plans import benchmark

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("accept", help="record that a source change does not change the numbers")
    verb.add_argument("study")
    verb.add_argument("what", help="a kind of entry of the benchmark, or scores")
    verb.set_defaults(run=_accept)


def _accept(parsed: argparse.Namespace) -> None:
    from stepline.runs.accept import accept

    found = accept(benchmark(load(parsed.configfile), parsed.study), parsed.study, parsed.what)
    print(f"{parsed.study}: {found} files of {parsed.what!r} accepted")

"""The verb `accept`: records that a source change does not change the numbers."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.config import load
from stepline.plans import benchmark, benchmarks

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("accept", help="record that a source change does not change the numbers")
    verb.add_argument("study", nargs="?", help="default: all studies with results in this folder")
    verb.add_argument("what", nargs="?", default="", help="a kind of entry of the benchmark, or scores; default: all")
    verb.set_defaults(run=_accept)


def _accept(parsed: argparse.Namespace) -> None:
    from stepline.runs.accept import accept

    config = load(parsed.configfile)
    found = [name for name in benchmarks(config) if Path("results", name, "predictions").is_dir()]
    for study in [parsed.study] if parsed.study else found:
        print(f"{study}: {accept(benchmark(config, study), study, parsed.what)} files accepted")

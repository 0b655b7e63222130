"""The verb `explain`: how a number was computed."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("explain", help="print the inputs, options and versions behind a line of a table")
    verb.add_argument("table", type=Path, help="results/STUDY/TABLE.csv")
    verb.add_argument("entry", help="as in the column entry")
    verb.add_argument("context", help="window length such as 180s, or all")
    verb.add_argument("release", help="as in the column release")
    verb.set_defaults(run=_explain)


def _explain(parsed: argparse.Namespace) -> None:
    from stepline.runs.explain import explain

    print(explain(parsed.table, parsed.entry, parsed.context, parsed.release))

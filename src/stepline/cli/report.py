"""The verb `report`: the page of a study or of a data set."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.config import load
from stepline.plans import has_tables, pipeline, plan

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("report", help="write the page of a study or of a data set")
    verb.add_argument("dataset", help="a study, or a dataset of your own")
    verb.set_defaults(run=_report)


def _report(parsed: argparse.Namespace) -> None:
    from stepline.report.page import write_page
    from stepline.runs.report import write_report

    config = load(parsed.configfile)
    if has_tables(config, parsed.dataset):
        write_report(plan(config, parsed.dataset), Path("results", parsed.dataset, "report.html"))
    else:
        write_page(pipeline(config, parsed.dataset), Path("results", parsed.dataset, "report.html"))

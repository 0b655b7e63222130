"""The stages of a study, from training to tables."""

import argparse
from typing import TYPE_CHECKING, Any

from stepline.config import load
from stepline.plans import plan

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers

OPTIONS: dict[str, dict[str, Any]] = {
    "release": {"required": True},
    "entry": {"required": True, "help": "as named in tables.yaml"},
    "context": {"default": "all", "help": "window length such as 180s; default: %(default)s"},
    "seed": {"type": int, "required": True},
    "table": {"default": "table2", "help": "default: %(default)s"},
}
"""Of the verbs of a study."""


def add(verbs: "SubParsers") -> None:
    """Add the stages."""
    for name, takes, text in (
        ("fit", ("release", "entry", "context", "seed"), "Train a head on cached features with one seed."),
        ("predict", ("release", "entry", "context"), "Write the predictions of an entry."),
        ("score", ("release", "entry", "context"), "Compute metrics from predictions alone."),
        ("table", ("table",), "Write a table of scores and the paper's numbers, as CSV and Markdown."),
        ("picture", ("table",), "Draw a table as a figure (SVG)."),
        ("pairs", (), "Compare methods video by video."),
        ("examples", (), "Write a page of examples: of methods, or of the paper by hand."),
        ("results", (), "Write the sha256 of all results, as `sha256sum --check` reads it."),
    ):
        verb = verbs.add_parser(name, description=text)
        verb.add_argument("study")
        for option in takes:
            verb.add_argument(f"--{option}", **OPTIONS[option])
        verb.set_defaults(run=_of_study, takes=takes)


def _of_study(parsed: argparse.Namespace) -> None:
    from stepline.runs.verbs import Verbs

    verb = getattr(Verbs(plan(load(parsed.configfile), parsed.study)), parsed.verb)
    verb(*(getattr(parsed, each) for each in parsed.takes))

"""The verb `demo`: builds the embedded study."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("demo", help="build the embedded study: five short videos and their labels")
    verb.add_argument("--mirror", type=Path, required=True, help="folder that STEPLINE_MIRROR will name")
    verb.add_argument("--truth", type=Path, required=True, help="JSON file for shots, words and labels")
    verb.set_defaults(run=_demo)


def _demo(parsed: argparse.Namespace) -> None:
    from stepline.demo.build import build

    build(parsed.mirror, parsed.truth)

"""The verb `explain`: how a number was computed."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stepline.benchmark.declared import SubParsers


def add(verbs: "SubParsers") -> None:
    """Add the verb."""
    verb = verbs.add_parser("explain", help="print the origin of numbers: definition, files, options, code")
    verb.add_argument(
        "path",
        type=Path,
        help="a table, results/STUDY/TABLE.csv, then its line; or a score, "
        "results/STUDY/scores/RELEASE/ENTRY/CONTEXT.json",
    )
    verb.add_argument(
        "line",
        nargs="*",
        metavar="ENTRY CONTEXT RELEASE",
        help="the line: CONTEXT is a window length such as 180s, or all",
    )
    verb.add_argument("--metric", default="", help="only this metric, as in the table's column metric")
    verb.add_argument(
        "--videos", action="store_true", help="also print the value and the weight of each video or other unit"
    )
    verb.set_defaults(run=_explain)


def _explain(parsed: argparse.Namespace) -> None:
    from stepline.errors import ConfigError
    from stepline.runs.explain import explain

    if len(parsed.line) not in (0, 3):
        raise ConfigError(f"a line of {parsed.path} has three names, ENTRY CONTEXT RELEASE, not {len(parsed.line)}")
    print(explain(parsed.path, *parsed.line, metric=parsed.metric, videos=parsed.videos))

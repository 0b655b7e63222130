"""The verb `search`: videos and moments that are like a text."""

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[Any]


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = verbs.add_parser("search", help="the videos and moments that are most like a text, here and as a page")
    verb.add_argument("dataset", help="a study, or a dataset of your own")
    verb.add_argument("text")
    verb.add_argument("--backbone", help="a network with a text tower, or a sentence encoder; see docs/search.md")
    verb.add_argument("--top", type=int, default=10, help="moments, and videos, that are shown (default: %(default)s)")
    verb.add_argument(
        "--window",
        type=float,
        default=10.0,
        help="seconds on either side of a moment in which no better one is (default: %(default)g)",
    )
    verb.set_defaults(run=_search)


def _search(parsed: argparse.Namespace) -> None:
    from stepline.config import load
    from stepline.features.search import search
    from stepline.plans import pipeline
    from stepline.report.search import lines, write_page

    made = pipeline(load(parsed.configfile), parsed.dataset)
    found = search(made, parsed.text, backbone=parsed.backbone, top=parsed.top, window_s=parsed.window)
    print("\n".join(lines(found)))
    print(f"The page: {write_page(made, found)}")

"""The verb `search`: videos that are like a text, with the moment in each and its steps."""

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Verbs = argparse._SubParsersAction[Any]


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = verbs.add_parser("search", help="the videos that are most like a text, with moment and steps")
    verb.add_argument("dataset", help="a study, or a dataset of your own")
    verb.add_argument("text")
    verb.add_argument("--backbone", help="a network with a text tower, or a sentence encoder; see docs/search.md")
    verb.add_argument("--top", type=int, default=10, help="videos, and matches, that are shown (default: %(default)s)")
    verb.add_argument(
        "--window",
        type=float,
        default=10.0,
        help="seconds on either side of a match in which no better one is (default: %(default)g)",
    )
    verb.set_defaults(run=_search)


def _search(parsed: argparse.Namespace) -> None:
    from stepline.config import load
    from stepline.plans import pipeline
    from stepline.report.search import lines, write_page
    from stepline.search.searcher import Searcher, checked

    checked(parsed.text, parsed.top, parsed.window)  # before what may take long
    made = pipeline(load(parsed.configfile), parsed.dataset)
    found = Searcher.open(made, parsed.backbone).ask(parsed.text, top=parsed.top, window_s=parsed.window)
    print("\n".join(lines(found)))
    print(f"The page: {write_page(made, found)}")

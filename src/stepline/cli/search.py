"""The verb `search`: videos that are like a text, with the moment in each and its steps."""

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepline.pipeline import Pipeline
    from stepline.search.searcher import Searcher

    Verbs = argparse._SubParsersAction[Any]


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = verbs.add_parser("search", help="find videos, moments and steps by a text")
    verb.add_argument("dataset", help="a study, or a dataset of your own")
    verb.add_argument("text", nargs="?", help="default: a text a line from standard input, until an empty line")
    verb.add_argument("--backbone", help="a network with a text tower, or a sentence encoder; see docs/search.md")
    verb.add_argument("--top", type=int, default=10, help="videos, and matches, that are shown (default: %(default)s)")
    verb.add_argument(
        "--window",
        type=float,
        default=10.0,
        help="seconds on either side of a match in which no better one is (default: %(default)g)",
    )
    verb.set_defaults(run=_search)
    verb.parse_known_args = partial(_with_text, verb.parse_known_args)


def _with_text(
    parse: "Callable[..., tuple[argparse.Namespace, list[str]]]", *arguments: Any
) -> tuple[argparse.Namespace, list[str]]:
    """Take a text that stands behind options: argparse, up to Python 3.12.6, leaves it over."""
    parsed, over = parse(*arguments)
    if parsed.text is None and over and not over[0].startswith("-"):
        parsed.text = over.pop(0)
    return parsed, over


def _search(parsed: argparse.Namespace) -> None:
    if parsed.text is None:
        from stepline.cli.prompt import prompt

        prompt(parsed)
    else:
        from stepline.search.searcher import Searcher, checked

        checked(parsed.text, parsed.top, parsed.window)  # before what may take long
        made = pipeline_of(parsed)
        print(answer(parsed, made, Searcher.open(made, parsed.backbone), parsed.text))


def pipeline_of(parsed: argparse.Namespace) -> "Pipeline":
    """Return the data set's pipeline as it is configured now."""
    from stepline.config import load
    from stepline.plans import pipeline

    return pipeline(load(parsed.configfile), parsed.dataset)


def answer(parsed: argparse.Namespace, made: "Pipeline", searcher: "Searcher", text: str) -> str:
    """Write the page of a question and return what is printed."""
    from stepline.report.search import lines, write_page

    found = searcher.ask(text, top=parsed.top, window_s=parsed.window)
    return "\n".join([*lines(found), f"The page: {write_page(made, found)}"])

"""The verb `search`: finds videos that match a text, with the best moment in each video and its steps."""

import argparse
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.errors import ConfigError
from stepline.invocation import current
from stepline.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from stepline.pipeline import Pipeline
    from stepline.search.searcher import Searcher

    Verbs = argparse._SubParsersAction[Any]

TOP, WINDOW_S = 10, 10.0


def add(verbs: "Verbs") -> None:
    """Add the verb."""
    verb = verbs.add_parser("search", help="find videos, moments and steps by a text or a moment")
    verb.add_argument("dataset", help="a study or a data set")
    verb.add_argument("text", nargs="?", help="default: one text per line from standard input, until an empty line")
    verb.add_argument(
        "--like", metavar="VIDEO@TIME", help="a moment instead of a text; time as seconds, m:ss or h:mm:ss"
    )
    verb.add_argument(
        "--backbone", help="a network with a text tower, a sentence encoder, or words; see docs/search.md"
    )
    verb.add_argument("--video", action="append", default=[], help="search only this video; repeatable")
    verb.add_argument(
        "--top", type=int, default=TOP, help="number of videos and matches to show (default: %(default)s)"
    )
    verb.add_argument(
        "--window",
        type=float,
        default=WINDOW_S,
        help="minimum distance between matches, in seconds (default: %(default)g)",
    )
    verb.add_argument("--exact", action="store_true", help="compare all rows, also if there is an index")
    verb.add_argument("--cut", metavar="FOLDER", type=Path, help="write the moments to this folder as MP4")
    verb.set_defaults(run=_search)
    verb.parse_known_args = partial(_with_text, verb.parse_known_args)


def _with_text(
    parse: "Callable[..., tuple[argparse.Namespace, list[str]]]", *arguments: Any
) -> tuple[argparse.Namespace, list[str]]:
    """Accept a text after options, which argparse does not assign in Python versions up to 3.12.6."""
    parsed, over = parse(*arguments)
    words = [word for word in over if word != "--"]
    if parsed.text is None and words:
        parsed.text = words.pop(0)
    return parsed, words


def _search(parsed: argparse.Namespace) -> None:
    if parsed.like and parsed.text is not None:
        raise ConfigError(f"--like {parsed.like} replaces the text: remove {parsed.text!r}")
    if parsed.text is None and not parsed.like:
        from stepline.cli.prompt import prompt

        prompt(parsed)
        return
    from stepline.search.searcher import Searcher, checked

    checked(parsed.text or "like", parsed.top, parsed.window)  # before slow steps
    if parsed.like:
        moment(parsed.like)
    made = pipeline_of(parsed)
    searcher = Searcher.open(made, parsed.backbone, needs_text=not parsed.like, exact=parsed.exact)
    print(answer(parsed, searcher, parsed.text))


def pipeline_of(parsed: argparse.Namespace) -> "Pipeline":
    """Return the data set's pipeline with the current configuration."""
    from stepline.config import load
    from stepline.plans import pipeline

    return pipeline(load(parsed.configfile), parsed.dataset)


def moment(text: str) -> tuple[str, float]:
    """Return the video and the time in seconds of ``VIDEO@TIME``; raise ConfigError if the text is not of this form."""
    video, _, time = text.rpartition("@")
    parts = time.split(":")
    if not video or len(parts) > 3 or not all(re.fullmatch(r"\d{1,9}", part) for part in parts[:-1]):
        parts = [""]
    if not re.fullmatch(r"\d{1,9}(\.\d{1,9})?", parts[-1], re.ASCII):
        raise ConfigError(f"--like requires VIDEO@TIME, such as soup@12.5 or soup@1:02, not {text!r}")
    return video, sum(60**place * float(part) for place, part in enumerate(reversed(parts)))


def answer(parsed: argparse.Namespace, searcher: "Searcher", text: str | None) -> str:
    """Write the page of a query, which is ``text`` or the moment of ``--like``, and return the text to print."""
    from stepline.report.search import lines, write_page

    options = {"top": parsed.top, "window_s": parsed.window, "videos": parsed.video}
    found = searcher.ask(text, **options) if text else searcher.like(*moment(parsed.like), **options)
    said = [*lines(found), f"Page: {write_page(searcher, found, _again(parsed))}"]
    if parsed.cut:
        from stepline.report.clips import write_clips

        said[-1:-1] = write_clips(searcher.pipeline, found.videos, parsed.cut)
    return "\n".join(map(printable, said))


def _again(parsed: argparse.Namespace) -> str:
    """Return the command without its query and its videos."""
    words = ["search", parsed.dataset]
    for option, default in (("backbone", None), ("top", TOP), ("window", WINDOW_S)):
        if (value := getattr(parsed, option)) != default:
            words += [f"--{option}", f"{value:g}" if isinstance(value, float) else str(value)]
    return current().verb(*words, *(["--exact"] if parsed.exact else []))

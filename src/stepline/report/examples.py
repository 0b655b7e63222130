"""The page of examples: correct and wrong predictions, each with transcript, frames and answers."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stepline.report import write_html

TOKEN = re.compile(r"[^\W_]+")


@dataclass(frozen=True, kw_only=True)
class Clip:
    """A window of a recording with its title, transcript and pictures.

    said: pieces of the transcript, each with its mark: ``true``, ``false``, ``both`` or "". pictures: URL and time of
    each picture. note: why there are no pictures. verdict: the verdict on a candidate.
    """

    title: str
    said: Sequence[tuple[str, str]]
    pictures: Sequence[tuple[str, str]] = ()
    note: str = ""
    verdict: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A step with the method's score; the title contains the rank, caption and narration are in pieces."""

    title: str
    caption: Sequence[tuple[str, str]]
    narration: Sequence[tuple[str, str]]
    score: str = ""
    right: bool = False


@dataclass(frozen=True, kw_only=True)
class Example:
    """A sample with the method's answers: the best steps by score and the true step; empty for retrieval.

    command: writes the timeline of its video; "" if the video is missing.
    """

    title: str
    margin: str
    clips: Sequence[Clip]
    answers: Sequence[Answer] = ()
    command: str = ""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The examples of a method. reason: why it has none."""

    title: str
    anchor: str
    facts: str
    successes: Sequence[Example] = ()
    failures: Sequence[Example] = ()
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Examples:
    """The content of the page: each task with its rule and methods, and missing methods with needs and command."""

    title: str
    note: str
    tasks: Sequence[tuple[str, str, Sequence[Shown]]]
    missing: Sequence[tuple[str, str, str]] = ()


def write_examples(page: Examples, path: Path | str) -> None:
    """Write the page as one self-contained HTML file without network access. Equal inputs produce equal bytes."""
    write_html(path, "examples.html.j2", page=page)


def words(text: str) -> frozenset[str]:
    """Return the lower-case words of a text without stop words and single letters."""
    return frozenset(token for token in map(str.lower, TOKEN.findall(text)) if len(token) > 1) - _stop_words()


@cache
def _stop_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)


def marked(text: str, true: Collection[str], false: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return a text in pieces, each with a mark: ``true``, ``false`` or ``both`` for words in these sets, else ""."""
    pieces: list[tuple[str, str]] = []
    for piece, kind in _pieces(text, true, false):
        if pieces and pieces[-1][1] == kind == "":
            pieces[-1] = (pieces[-1][0] + piece, "")
        elif piece:
            pieces.append((piece, kind))
    return pieces


def _pieces(text: str, true: Collection[str], false: Collection[str]) -> Iterator[tuple[str, str]]:
    at = 0
    for token in TOKEN.finditer(text):
        yield text[at : token.start()], ""
        word = token.group().lower()
        yield (
            token.group(),
            {(True, True): "both", (True, False): "true", (False, True): "false"}.get(
                (word in true, word in false), ""
            ),
        )
        at = token.end()
    yield text[at:], ""

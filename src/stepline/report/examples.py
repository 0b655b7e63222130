"""The page of examples: what methods get right and wrong, each with what is said, shown and answered."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from stepline.report import write_html

TOKEN = re.compile(r"[^\W_]+")


@dataclass(frozen=True, kw_only=True)
class Clip:
    """A window of a recording: what it is, what is said in it, and pictures of it or why there are none.

    said: pieces of the text, each with how it is marked: ``true``, ``false``, ``both`` or "". pictures: address and
    what it is of. verdict: what is said of a candidate.
    """

    title: str
    said: Sequence[tuple[str, str]]
    pictures: Sequence[tuple[str, str]] = ()
    note: str = ""
    verdict: str = ""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A step, with its rank in the title, and the method's score of it; caption and narration as pieces."""

    title: str
    caption: Sequence[tuple[str, str]]
    narration: Sequence[tuple[str, str]]
    score: str = ""
    right: bool = False


@dataclass(frozen=True, kw_only=True)
class Example:
    """A sample with what the method answers: the best steps by score, and the true one; none in retrieval.

    command: makes the timeline of its video; "" where the video is not there.
    """

    title: str
    margin: str
    clips: Sequence[Clip]
    answers: Sequence[Answer] = ()
    command: str = ""


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A method's examples. reason: why it has none."""

    title: str
    anchor: str
    facts: str
    successes: Sequence[Example] = ()
    failures: Sequence[Example] = ()
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class Examples:
    """The page: by task its rule and its methods, and what is missing: a method, its needs, the command."""

    title: str
    note: str
    tasks: Sequence[tuple[str, str, Sequence[Shown]]]
    missing: Sequence[tuple[str, str, str]] = ()


def write_examples(page: Examples, path: Path | str) -> None:
    """Write the page as one self-contained HTML file: no network, same inputs same bytes."""
    write_html(path, "examples.html.j2", page=page)


def words(text: str) -> frozenset[str]:
    """Return the words of a text in lower case that say something: no stop words, no single letters."""
    return frozenset(token for token in map(str.lower, TOKEN.findall(text)) if len(token) > 1) - _stop_words()


@cache
def _stop_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return frozenset(ENGLISH_STOP_WORDS)


def marked(text: str, true: Collection[str], false: Collection[str] = ()) -> list[tuple[str, str]]:
    """Return a text in pieces: words of ``true``, of ``false``, of ``both``, and what is between them with ""."""
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

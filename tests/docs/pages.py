"""The blocks of code of a page, and the commands in them.

The words after a block's language say what the tests do with it:

- ``sh``: executed word for word, in a checkout where the demo has run.
- ``sh plan``: a full study, or a command for a cluster. Snakemake runs with ``-n``, the rest is parsed.
- ``sh check``: needs what the tests do not have (a network, weights, a cluster). Verbs and options are parsed.
- ``python``: executed. An expression must have the value in the comment behind or below it.
- ``python check``: compiled.
- ``yaml``: a valid configuration. ``yaml profile`` is a profile of Snakemake.

A block below ``<!-- file: NAME -->`` is written to that file.
"""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

FENCE = re.compile(
    r"(?:^ *<!-- file: (?P<file>\S+) -->\n)?^(?P<margin> *)```(?P<words>\w[^\n]*)\n(?P<text>.*?)^(?P=margin)```$",
    re.MULTILINE | re.DOTALL,
)
INLINE = re.compile(r"`((?:snakemake|stepline) [^`]+)`")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]


@dataclass(frozen=True)
class Block:
    """A block of code. place: page and line. kind: the language, and what follows it. file: what it is written to."""

    place: str
    kind: str
    text: str
    file: str | None


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page, in its order."""
    content = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(content):
        margin, line = match["margin"], content.count("\n", 0, match.start("words")) + 1
        text = re.sub(f"^{margin}", "", match["text"], flags=re.MULTILINE)
        found.append(Block(f"{page.relative_to(ROOT)}:{line}", match["words"].strip(), text, match["file"]))
    return found


def commands(text: str) -> list[list[str]]:
    """Return the words of each command of a shell's text, without variables before it and files that it reads."""
    found = []
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="&|;<>")
        lexer.whitespace_split = True
        words: list[str] = []
        for word in [*lexer, ";"]:
            if set(word) <= set("&|;"):
                kept = words[: next((at for at, each in enumerate(words) if set(each) <= set("<>")), None)]
                while kept and re.match(r"\w+=", kept[0]):
                    kept = kept[1:]
                found += [kept] if kept else []
                words = []
            else:
                words.append(word)
    return found


def inline(page: Path) -> list[str]:
    """Return the commands within a page's sentences and tables, of those the ones without placeholders."""
    outside = FENCE.sub("", page.read_text(encoding="utf-8"))
    return [text for text in INLINE.findall(outside) if not re.search(r"\.\.\.|…|<", text)]

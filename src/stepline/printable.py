"""Foreign text as part of one line: file names, transcripts, labels, messages of servers and programs."""

from unicodedata import category

HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
JOINERS = "\u200c\u200d"
"""Invisible characters that scripts and emoji need, and that change nothing else."""


def printable(text: str) -> str:
    r"""Return ``text`` with escapes for characters that break or reorder a line, or that a terminal obeys.

    These are control and format characters, surrogates, and separators of lines and paragraphs: ``\n``, ``\x1b``,
    ``\u202e``.
    """
    if text.isprintable():
        return text
    return "".join(
        each.encode("unicode_escape").decode() if category(each) in HIDDEN and each not in JOINERS else each
        for each in text
    )

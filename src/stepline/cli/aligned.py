"""Columns of text for a terminal."""

from collections.abc import Iterable, Sequence


def aligned(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as lines with columns of one width, two spaces apart; numbers stand at the right of theirs."""
    texts = [[str(each) for each in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    right = [all(_is_number(text) for text in column[1:]) for column in zip(*texts, strict=True)]
    return "\n".join(
        "  ".join(
            text.rjust(width) if number else text.ljust(width)
            for text, width, number in zip(row, widths, right, strict=True)
        ).rstrip()
        for row in texts
    )


def _is_number(text: str) -> bool:
    return not text or text[0].isdecimal() or text.startswith(("<", "at most "))


def size(n_bytes: int) -> str:
    """Return bytes in a unit of thousands that suits them, such as ``230 MB``."""
    power = next((power for power in (1, 2, 3) if n_bytes < 999.5 * 1000**power), 4)
    value = n_bytes / 1000**power
    return f"{value:.{0 if value >= 10 else 1}f} {' kMGT'[power]}B"


def duration(hours: float) -> str:
    """Return hours as time that a person would say: ``40 s``, ``12 min``, ``3.5 h``."""
    if hours < 1 / 60:
        return f"{max(1, round(3600 * hours))} s" if hours else "0 s"
    return f"{60 * hours:.0f} min" if hours < 1.5 else f"{hours:.1f} h"

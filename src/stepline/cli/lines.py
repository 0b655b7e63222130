"""Tables of text on the standard output."""

from collections.abc import Sequence


def columns(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells as text, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    padded = ([text.ljust(width) for text, width in zip(line, widths, strict=True)] for line in lines)
    return "\n".join("  ".join(line).rstrip() for line in padded)


def size(count: float) -> str:
    """Return a number of bytes as text with a decimal unit."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.{unit != 'B' and count < 10:d}f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"

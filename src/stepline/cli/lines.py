"""Plain-text tables, sizes and durations for the terminal."""

from collections.abc import Container, Sequence

from stepline.printable import printable


def columns(lines: Sequence[Sequence[object]], right: Container[int] = ()) -> str:
    """Return lines of cells as aligned text. right: indices of right-aligned columns."""
    texts = [[printable(str(cell)) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
    padded = (
        [text.rjust(widths[n]) if n in right else text.ljust(widths[n]) for n, text in enumerate(line)]
        for line in texts
    )
    return "\n".join("  ".join(line).rstrip() for line in padded)


def size(count: float) -> str:
    """Return a number of bytes as text with a decimal unit, such as 1.2 MB."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.{unit != 'B' and count < 10:d}f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def duration(hours: float) -> str:
    """Return a duration in hours as text in seconds, minutes or hours."""
    if hours < 1 / 60:
        return f"{3600 * hours:.0f} s"
    return f"{60 * hours:.0f} min" if hours < 1.5 else f"{hours:.{hours < 100:d}f} h"

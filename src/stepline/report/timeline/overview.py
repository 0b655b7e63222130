"""Spans over a video's time as one path of an SVG, for print, for pages without script and for lists."""

from collections.abc import Iterable

WIDTH = 1000
HEIGHT = 20


def path(spans: Iterable[tuple[float, float]], end_s: float) -> str:
    """Return spans, start and end in seconds, as rectangles in a box of WIDTH by HEIGHT, with a gap after each."""
    scale = WIDTH / end_s if end_s else 0.0
    boxes = ((round(start_s * scale, 1), round((end - start_s) * scale, 1)) for start_s, end in spans)
    return "".join(
        f"M{left:g} 0h{max(width - 0.6, 0.8):g}v{HEIGHT}h-{max(width - 0.6, 0.8):g}z" for left, width in boxes
    )

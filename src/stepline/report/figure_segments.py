"""Figure of segments over time."""

from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.figure import Figure

from stepline.report.figures import COLOURS, STYLE


def segments(duration_s: float, tracks: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """Draw segments over the time of a video in seconds: one strip per track, with numbered segments.

    Each segment is on the first level of its strip without overlap.
    """
    with matplotlib.rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=(10, 0.45 * len(tracks) + 0.9), layout="constrained")
        axes = figure.add_subplot()
        for place, track in enumerate(tracks.values()):
            levels = _levels(track)
            height = 0.76 / (max(levels, default=0) + 1)
            for number, ((start_s, end_s), level) in enumerate(zip(track, levels, strict=True)):
                lower = place - 0.38 + level * height
                axes.broken_barh(
                    [(start_s, end_s - start_s)], (lower, 0.94 * height), facecolors=COLOURS[number % len(COLOURS)]
                )
                axes.text(
                    (start_s + end_s) / 2, lower + 0.47 * height, str(number + 1), ha="center", va="center",
                    fontsize=7, color="white", clip_on=True,
                )  # fmt: skip
        axes.set_yticks(range(len(tracks)), list(tracks))
        axes.set_ylim(len(tracks) - 0.5, -0.5)
        axes.set_xlim(0, duration_s)
        axes.set_xlabel("time in the video (s)")
        axes.spines["left"].set_visible(False)
    return figure


def _levels(track: Sequence[tuple[float, float]]) -> list[int]:
    ends: list[float] = []
    levels = [0] * len(track)
    for number in sorted(range(len(track)), key=lambda each: track[each]):
        start_s, end_s = track[number]
        levels[number] = next((level for level, over in enumerate(ends) if over <= start_s), len(ends))
        ends[levels[number] :] = [end_s, *ends[levels[number] + 1 :]]
    return levels

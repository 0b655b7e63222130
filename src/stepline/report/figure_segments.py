"""Figures of ordered segmentation: methods' scores, and segments over time."""

from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.figure import Figure

from stepline.report.figures import COLOURS, STYLE, has_number
from stepline.tables import METRICS, Row, is_oracle


def scores(rows: Sequence[Row], metric: str) -> Figure:
    """Draw a metric of a table's rows on one release, a line per method: ours with its interval, hollow the paper's."""
    shown = [row for row in rows if row.metric == metric and has_number(row)]
    with matplotlib.rc_context({**STYLE, "axes.grid.axis": "x"}):
        figure = Figure(figsize=(8.4, 0.34 * len(shown) + 1.2), layout="constrained")
        axes = figure.add_subplot()
        for place, row in enumerate(shown):
            if row.value is not None:
                if row.ci_low is not None and row.ci_high is not None:
                    axes.plot([row.ci_low, row.ci_high], [place, place], color=COLOURS[0], linewidth=1.4)
                axes.plot(row.value, place, "o", color=COLOURS[0], markersize=6)
            if row.paper is not None:
                axes.plot(row.paper, place, "o", color="#222222", markerfacecolor="none", markersize=9, zorder=3)
        axes.plot([], [], "o", color=COLOURS[0], markersize=6, label="ours, 95 % interval")
        axes.plot([], [], "o", color="#222222", markerfacecolor="none", markersize=9, label="the paper's")
        axes.set_yticks(range(len(shown)), [_name(row) for row in shown])
        axes.set_ylim(len(shown) - 0.5, -0.5)
        axes.set_xlabel(f"{METRICS[metric]} (%)")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    return figure


def _name(row: Row) -> str:
    name = ", ".join(filter(None, [row.method, row.modality, row.setting]))
    return f"{name} *" if is_oracle(row) else name


def segments(duration_s: float, tracks: Mapping[str, Sequence[tuple[float, float]]]) -> Figure:
    """Draw segments over a video's time, in seconds: a strip per track, in its order, each segment with its number.

    A segment stands on the first level of its strip on which none overlaps it.
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

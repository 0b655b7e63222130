"""Figure of the values of single videos."""

from collections.abc import Iterable, Sequence

import matplotlib
from matplotlib.figure import Figure

from stepline.report.figures import COLOURS, MARKERS, STYLE
from stepline.tables import Row, context_name, is_oracle


def longest_context(rows: Iterable[Row]) -> list[Row]:
    """Return the row with the longest context for each (method, setting, entry); unlimited is the longest."""
    longest: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        key = (row.method, row.setting, row.entry)
        if key not in longest or _length(row) > _length(longest[key]):
            longest[key] = row
    return list(longest.values())


def _length(row: Row) -> float:
    return float("inf") if row.context_s is None else row.context_s


def spread(rows: Sequence[Row]) -> Figure:
    """Draw the value of each video, with a line per row (method) and the mean as a bar."""
    videos = sorted({video for row in rows for video in row.per_video})
    with matplotlib.rc_context({**STYLE, "axes.grid.axis": "x"}):
        figure = Figure(figsize=(8.4, 0.34 * len(rows) + 1.3), layout="constrained")
        axes = figure.add_subplot()
        for place, row in enumerate(rows):
            assert row.value is not None
            axes.plot([row.value] * 2, [place - 0.32, place + 0.32], color="#222222", linewidth=2.2, zorder=3)
        for index, video in enumerate(videos):
            found = [(row.per_video[video], place) for place, row in enumerate(rows) if video in row.per_video]
            few = len(videos) <= len(MARKERS)
            axes.plot(
                [value for value, _ in found], [place for _, place in found], linestyle="", markersize=5.5, alpha=0.85,
                color=COLOURS[index % len(COLOURS)] if few else "#0072B2", label=video if few else None,
                marker=MARKERS[index % len(MARKERS)] if few else "o",
            )  # fmt: skip
        axes.plot([], [], color="#222222", linewidth=2.2, label="mean")
        axes.set_yticks(range(len(rows)), [_row_name(row) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("accuracy (%) per video")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    return figure


def _row_name(row: Row) -> str:
    name = f"{row.method}, {row.setting}" + ("" if row.context_s is None else f", {context_name(row.context_s)}")
    return f"{name} *" if is_oracle(row.sees) else name

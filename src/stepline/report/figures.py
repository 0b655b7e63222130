"""Shared parts of matplotlib figures: colours, curves and legend. Equal rows produce equal bytes."""

import io
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stepline.tables import Row

# Okabe and Ito's colour-blind safe palette; each of the 7 x 8 pairs of colour and marker occurs once.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#555555",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.color": "#e4e4e4",
    "svg.hashsalt": "stepline",
    "svg.fonttype": "path",
}


def render(figure: Figure) -> bytes:
    """Return the figure as SVG without date and program version."""
    content = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None}, facecolor="white")
    return content.getvalue()


def has_number(row: Row) -> bool:
    """Return whether a row has a value to draw, ours or the paper's."""
    return row.value is not None or row.paper is not None


def draw_curves(
    axes: Axes, rows: Sequence[Row], styles: Mapping[str, tuple[str, str]], contexts: Sequence[float]
) -> None:
    """Draw values against context, one curve per method: filled markers are ours, hollow markers the paper's."""
    for index, (method, (colour, marker)) in enumerate(styles.items()):
        shift = 0.5 * ((index + 0.5) / len(styles) - 0.5)
        style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 5}
        mine = [row for row in rows if row.method == method]
        for entry in dict.fromkeys(row.entry for row in mine):
            ours = [row for row in mine if row.entry == entry and row.value is not None]
            x = [contexts.index(row.context_s) + shift for row in ours if row.context_s is not None]
            y = [row.value for row in ours if row.value is not None]
            axes.plot(x, y, linewidth=1.2, zorder=3, **style)
            for place, row in zip(x, ours, strict=True):
                if row.ci_low is not None and row.ci_high is not None:
                    axes.vlines(place, row.ci_low, row.ci_high, color=colour, linewidth=1.1, alpha=0.6)
        theirs = [row for row in mine if row.paper is not None]
        x = [contexts.index(row.context_s) + shift for row in theirs if row.context_s is not None]
        y = [row.paper for row in theirs if row.paper is not None]
        axes.plot(x, y, linewidth=0.8, linestyle=":", markerfacecolor="white", zorder=2, **style)


def draw_legend(figure: Figure, curves: Sequence[Row], styles: Mapping[str, tuple[str, str]], height: float) -> None:
    """Draw the legend of methods below all axes. height: the height of the figure in inches."""
    computed = {row.method for row in curves if row.value is not None}
    handles = [
        Line2D(
            [], [], color=colour, marker=marker, markersize=5, label=method,
            linestyle="-" if method in computed else ":", markerfacecolor=None if method in computed else "white",
        )
        for method, (colour, marker) in styles.items()
    ]  # fmt: skip
    key = [Line2D([], [], color="#222222", marker="o", markersize=5, linewidth=1.2, label="ours, 95 % interval")]
    if any(row.paper is not None for row in curves):
        key.append(
            Line2D([], [], color="#222222", marker="o", markerfacecolor="white", linestyle=":", label="the paper's")
        )
    figure.legend(
        handles=handles + key, loc="lower center", bbox_to_anchor=(0.5, 0.08 / height), ncols=5, frameon=False,
        fontsize=8.5,
    )  # fmt: skip

"""The figures of the report, drawn with matplotlib. Same rows, same bytes."""

import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from stepline.tables import METRICS, Row, context_name, is_oracle, percent

# Okabe and Ito's colours, which colour-blind readers can tell apart; seven colours and eight markers never pair twice.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#444444")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ((0, (6, 2)), (0, (2, 2)), (0, (8, 2, 2, 2)), (0, (1, 2)), (0, (4, 1)), (0, (3, 5)))
AXES = {"accuracy": "accuracy (%)", "map": "mAP (%)"}
LEARNED = ("zero-shot", "tuned", "last-layer", "all-layer")
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
    """Return the figure as SVG, without a date or the name of a program version."""
    content = io.BytesIO()
    with matplotlib.rc_context(STYLE):
        figure.savefig(content, format="svg", metadata={"Date": None, "Creator": None}, facecolor="white")
    return content.getvalue()


def longest_context(rows: Iterable[Row]) -> list[Row]:
    """Return of each (method, setting, entry) the row with the longest context; unlimited is the longest."""
    longest: dict[tuple[str, str, str], Row] = {}
    for row in rows:
        key = (row.method, row.setting, row.entry)
        if key not in longest or _length(row) > _length(longest[key]):
            longest[key] = row
    return list(longest.values())


def _length(row: Row) -> float:
    return float("inf") if row.context_s is None else row.context_s


def _curved(rows: Sequence[Row]) -> list[Row]:
    return [row for row in rows if row.setting in LEARNED and row.context_s is not None]


def styles(rows: Sequence[Row]) -> dict[str, tuple[str, str]]:
    """Return the colour and the marker of each method that has a curve in ``rows``."""
    methods = dict.fromkeys(row.method for row in _curved(rows) if has_number(row))
    return dict(zip(methods, zip(cycle(COLOURS), cycle(MARKERS), strict=False), strict=False))


def results(rows: Sequence[Row], style: Mapping[str, tuple[str, str]]) -> Figure:
    """Draw a table on one release: value against context, a column per setting, a row per metric.

    style: of ``styles``, for all figures that stand together: a method looks the same in each.
    Filled markers are ours with the 95 % interval, hollow ones the paper's; dashed lines are baselines and references
    without a context. Where they lie far above the methods, the axis is broken.
    """
    metrics = [m for m in METRICS if any(row.metric == m and has_number(row) for row in rows)]
    settings = [s for s in LEARNED if any(row.setting == s and has_number(row) for row in rows)] or ["zero-shot"]
    curves = _curved(rows)
    drawn = {row.method for row in curves if has_number(row)}
    style = {method: look for method, look in style.items() if method in drawn}
    contexts = sorted({row.context_s for row in curves if row.context_s is not None and has_number(row)})
    heights = []
    for metric in metrics:
        heights += [0.9, 2.6] if _breaks(rows, metric) else [2.6]
    width, height = 3.1 * len(settings) + 2.6, sum(heights) + 0.5 * len(metrics) + 1.5
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height))
        grid = figure.add_gridspec(
            len(heights), len(settings), height_ratios=heights, left=0.75 / width, right=1 - 1.95 / width,
            top=1 - 0.45 / height, bottom=1.15 / height, wspace=0.08, hspace=0.16,
        )  # fmt: skip
        place = 0
        for metric in metrics:
            broken = _breaks(rows, metric)
            for column, setting in enumerate(settings):
                part = [row for row in curves if (row.metric, row.setting) == (metric, setting)]
                axes = figure.add_subplot(grid[place + broken, column])
                draw_curves(axes, part, style, contexts)
                shown = [axes]
                if broken:
                    upper = figure.add_subplot(grid[place, column])
                    shown.insert(0, upper)
                _limits(shown, rows, metric)
                for index, one in enumerate(shown):
                    _references(one, rows, metric, label=column == len(settings) - 1)
                    one.set_xlim(-0.5, len(contexts) - 0.5)
                    one.set_xticks(range(len(contexts)), [context_name(c) for c in contexts])
                    one.tick_params(labelbottom=index == len(shown) - 1, labelleft=column == 0, length=2)
                    if index < len(shown) - 1:
                        one.spines["bottom"].set_visible(False)
                        one.tick_params(bottom=False)
                if broken:
                    _mark_break(shown[0], 0)
                    _mark_break(shown[1], 1)
                if place == 0:
                    shown[0].set_title(setting, fontsize=10, fontweight="bold")
                if column == 0:
                    axes.set_ylabel(AXES[metric])
            place += 1 + broken
        draw_legend(figure, curves, style, height)
    return figure


def has_number(row: Row) -> bool:
    """Return whether there is a value to draw, ours or the paper's."""
    return row.value is not None or row.paper is not None


def _baselines(rows: Sequence[Row], metric: str) -> dict[str, tuple[float, bool]]:
    """Return name to (value, ours?) of the methods whose value is the same at every context."""
    found: dict[str, set[tuple[float, bool]]] = {}
    for row in rows:
        if row.setting not in LEARNED and row.metric == metric and has_number(row):
            value = row.paper if row.value is None else row.value
            assert value is not None
            name = row.method + (" (sample list)" if "sample_list" in row.inputs else "")
            ours = row.value is not None and row.status != "reference"
            found.setdefault(name if ours else f"{name} (paper)", set()).add((float(percent(value)), ours))
    return {name: next(iter(values)) for name, values in found.items() if len(values) == 1}


def _extent(rows: Sequence[Row], metric: str) -> tuple[float, float]:
    values = [
        value
        for row in rows
        if row.metric == metric and row.setting in LEARNED
        for value in (row.value, row.paper, row.ci_low, row.ci_high)
        if value is not None
    ]
    return (min(values), max(values)) if values else (0.0, 1.0)


def _breaks(rows: Sequence[Row], metric: str) -> bool:
    top = max((value for value, _ in _baselines(rows, metric).values()), default=0.0)
    return top > 1.6 * _extent(rows, metric)[1]


def _limits(shown: Sequence[Axes], rows: Sequence[Row], metric: str) -> None:
    low, high = _extent(rows, metric)
    lines = [value for value, _ in _baselines(rows, metric).values()]
    near = [value for value in lines if value <= 1.6 * high]
    far = [value for value in lines if value > 1.6 * high]
    low, high = min([low, *near]), max([high, *near])
    margin = 0.06 * (high - low)
    shown[-1].set_ylim(0 if low < 0.5 * high else low - margin, high + margin)
    if len(shown) > 1:
        shown[0].set_ylim(min(far) - 3, max(far) + 3)


def _mark_break(axes: Axes, height: int) -> None:
    slash: Any = [(-1, -0.5), (1, 0.5)]
    axes.plot(
        [0], [height], transform=axes.transAxes, marker=slash, markersize=8, linestyle="", color="#555555",
        clip_on=False,
    )  # fmt: skip


def draw_curves(
    axes: Axes, rows: Sequence[Row], styles: Mapping[str, tuple[str, str]], contexts: Sequence[float]
) -> None:
    """Draw value against context, a curve per method: filled markers are ours, hollow ones the paper's."""
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


def _references(axes: Axes, rows: Sequence[Row], metric: str, *, label: bool) -> None:
    low, high = axes.get_ylim()
    inside = {n: v for n, v in sorted(_baselines(rows, metric).items(), key=lambda i: i[1]) if low <= v[0] <= high}
    inches = axes.get_window_extent().height / 100
    gap = (high - low) * 0.15 / inches
    place = float("-inf")
    for index, (name, (value, ours)) in enumerate(inside.items()):
        colour = "#222222" if ours else "#777777"
        axes.axhline(value, color=colour, linewidth=1, linestyle=DASHES[index % len(DASHES)], zorder=1)
        if label:
            place = max(value, place + gap)
            axes.annotate(
                f"{name} {value:g}", (1, value), (1.03, place), xycoords=("axes fraction", "data"),
                textcoords=("axes fraction", "data"), va="center", fontsize=7.5, color=colour,
            )  # fmt: skip


def draw_legend(figure: Figure, curves: Sequence[Row], styles: Mapping[str, tuple[str, str]], height: float) -> None:
    """Draw below all axes what stands for which method. height: of the figure, in inches."""
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


def spread(rows: Sequence[Row]) -> Figure:
    """Draw the value of each video, a line per row (method), with the mean as a bar."""
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
    return f"{name} *" if is_oracle(row) else name


def timeline(times_s: Sequence[float], labels: Sequence[int], tracks: Mapping[str, Sequence[int | None]]) -> Figure:
    """Draw a recording's labels over time as a strip, and a strip of predictions per method below it.

    times_s: (N,) ascending; labels: (N,) 0 Irrelevant, 1..K steps; tracks: (N,) predictions per method, None a uniform
    guess. Between two samples the nearer one counts.
    """
    columns = 1200
    steps = max([1, *labels, *(p for track in tracks.values() for p in track if p is not None)])
    start, end = times_s[0], max(times_s[-1], times_s[0] + 1e-6)
    at = np.linspace(start, end, columns)
    middles = (np.asarray(times_s)[1:] + np.asarray(times_s)[:-1]) / 2
    nearest = np.searchsorted(middles, at)
    strips = {"labels": labels, **tracks}
    shades = matplotlib.colormaps["viridis"](np.linspace(0.05, 0.98, steps))
    palette = ListedColormap(np.vstack([[1, 1, 1, 1], [0.82, 0.82, 0.82, 1], shades]))
    unit, name = (3600.0, "h") if end >= 7200 else (60.0, "min") if end >= 300 else (1.0, "s")
    with matplotlib.rc_context({**STYLE, "axes.grid": False}):
        figure = Figure(figsize=(10, 0.42 * len(strips) + 0.95), layout="constrained")
        axes = figure.add_subplot()
        for place, strip in enumerate(strips.values()):
            codes = np.asarray([0 if label is None else label + 1 for label in strip])[nearest]
            axes.imshow(
                codes[None], aspect="auto", interpolation="nearest", cmap=palette, vmin=-0.5, vmax=steps + 1.5,
                extent=(start / unit, end / unit, place + 0.42, place - 0.42),
            )  # fmt: skip
        _numbers(axes, np.asarray(labels)[nearest], at / unit, steps)
        axes.set_yticks(range(len(strips)), list(strips))
        axes.set_ylim(len(strips) - 0.5, -0.5)
        axes.set_xlim(start / unit, end / unit)
        axes.set_xlabel(f"time in the recording ({name})")
        for side in ("left", "bottom"):
            axes.spines[side].set_visible(False)
    return figure


def _numbers(axes: Axes, labels: np.ndarray[Any, Any], at: np.ndarray[Any, Any], steps: int) -> None:
    """Write the step's number into the stretches that are wide enough."""
    edges = np.flatnonzero(np.diff(labels)) + 1
    for left, right in zip([0, *edges], [*edges, len(labels)], strict=True):
        label = labels[left]
        if label > 0 and right - left >= 0.018 * len(labels):
            colour = "black" if label > 0.6 * steps else "white"
            axes.text((at[left] + at[right - 1]) / 2, 0, str(label), ha="center", va="center", color=colour, fontsize=7)

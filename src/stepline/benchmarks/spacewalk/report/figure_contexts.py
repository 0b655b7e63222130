"""Values against context length: a table on one release."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import cycle
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stepline.report.figures import COLOURS, MARKERS, STYLE, draw_curves, draw_legend, has_number
from stepline.tables import Row, context_name, measures, percent

DASHES: tuple[Any, ...] = ((0, (6, 2)), (0, (2, 2)), (0, (8, 2, 2, 2)), (0, (1, 2)), (0, (4, 1)), (0, (3, 5)))
AXES = {"accuracy": "accuracy (%)", "map": "mAP (%)"}
LEARNED = ("zero-shot", "tuned", "last-layer", "all-layer")


def _curved(rows: Iterable[Row]) -> list[Row]:
    return [row for row in rows if row.setting in LEARNED and row.context_s is not None]


def styles(rows: Sequence[Row]) -> dict[str, tuple[str, str]]:
    """Return the colour and the marker of each method that has a curve in ``rows``."""
    methods = dict.fromkeys(row.method for row in _curved(rows) if has_number(row))
    return dict(zip(methods, zip(cycle(COLOURS), cycle(MARKERS), strict=False), strict=False))


def contexts(rows: Sequence[Row], style: Mapping[str, tuple[str, str]]) -> Figure:
    """Draw a table on one release: value against context length, a column per setting, a row per metric.

    style: from ``styles``, shared by all figures of a page, so that a method looks the same in each. Filled markers are
    our values with the 95 % interval, hollow markers the paper's. Dashed lines are methods without a context,
    baselines and references. If some are far above the curves, the axis is broken.
    """
    metrics = list(measures(row for row in rows if has_number(row)))
    curves = _curved(rows)
    settings = [s for s in LEARNED if any(row.setting == s and has_number(row) for row in curves)] or ["zero-shot"]
    drawn = {row.method for row in curves if has_number(row)}
    style = {method: look for method, look in style.items() if method in drawn}
    lengths = sorted({row.context_s for row in curves if row.context_s is not None and has_number(row)})
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
                draw_curves(axes, part, style, lengths)
                shown = [axes]
                if broken:
                    upper = figure.add_subplot(grid[place, column])
                    shown.insert(0, upper)
                _limits(shown, rows, metric)
                for index, one in enumerate(shown):
                    _references(one, rows, metric, label=column == len(settings) - 1)
                    one.set_xlim(-0.5, len(lengths) - 0.5)
                    one.set_xticks(range(len(lengths)), [context_name(c) for c in lengths])
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


def _baselines(rows: Sequence[Row], metric: str) -> dict[str, tuple[float, bool]]:
    """Return name -> (value, whether it is ours) for methods without a curve and with one value at all contexts."""
    found: dict[str, set[tuple[float, bool]]] = {}
    for row in rows:
        if not _curved([row]) and row.metric == metric and has_number(row):
            value = row.paper if row.value is None else row.value
            assert value is not None
            name = row.method + (" (sample list)" if "sample_list" in row.inputs else "")
            ours = row.value is not None and row.status != "reference"
            found.setdefault(name if ours else f"{name} (paper)", set()).add((float(percent(value)), ours))
    return {name: next(iter(values)) for name, values in found.items() if len(values) == 1}


def _extent(rows: Sequence[Row], metric: str) -> tuple[float, float]:
    values = [
        value
        for row in _curved(rows)
        if row.metric == metric
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

"""Figure of one metric with a line per method."""

from collections.abc import Sequence

import matplotlib
from matplotlib.figure import Figure

from stepline.report.figures import COLOURS, STYLE, has_number
from stepline.tables import Row, is_oracle, measures


def scores(rows: Sequence[Row], metric: str) -> Figure:
    """Draw a metric of rows on one release, a line per method: ours filled with interval, the paper's hollow."""
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
        measure = measures(rows)[metric]
        axes.set_xlabel(f"{measure.title} (%)" if measure.unit == "%" else measure.title)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=8)
    return figure


def _name(row: Row) -> str:
    name = ", ".join(filter(None, [row.method, row.modality, row.setting]))
    return f"{name} *" if is_oracle(row.sees) else name

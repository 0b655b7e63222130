"""Values of a fine-tuned method against the number of training samples and videos, as in Figure A9 of the paper."""

from collections.abc import Mapping, Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from stepline.benchmarks.spacewalk.report.figure_contexts import AXES
from stepline.report.figures import COLOURS, STYLE
from stepline.tables import Row

PANELS = {"A9a": "training samples per video", "A9b": "training videos"}


def sizes(rows: Sequence[Row], amounts: Mapping[tuple[str, str], int], before: Sequence[Row]) -> Figure:
    """Draw value against the amount of training data: a column per table (A9a, A9b), a row per metric.

    amounts: by table and entry, the number of training samples per video, or of training videos. before: the rows of
    the same method without training, at the same window length; they are drawn as horizontal lines, dotted for the
    paper's values. The paper prints no numbers for the curves.
    """
    width, height = 8.4, 5.6
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height))
        grid = figure.add_gridspec(
            2, 2, left=0.65 / width, right=1 - 0.15 / width, top=1 - 0.2 / height, bottom=1.0 / height,
            wspace=0.06, hspace=0.12,
        )  # fmt: skip
        for column, (table, what) in enumerate(PANELS.items()):
            ticks = sorted({amount for (of, _), amount in amounts.items() if of == table})
            for line, metric in enumerate(AXES):
                axes = figure.add_subplot(grid[line, column], sharey=figure.axes[line] if column else None)
                part = [row for row in rows if (row.table, row.metric) == (table, metric)]
                known = [row for row in part if (table, row.entry) in amounts]
                _curve(axes, {ticks.index(amounts[table, row.entry]): row for row in known})
                for row in before:
                    if row.metric == metric:
                        _level(axes, row)
                axes.set_xlim(-0.5, max(len(ticks), 1) - 0.5)
                axes.set_xticks(range(len(ticks)), [str(tick) for tick in ticks])
                axes.tick_params(length=2, labelleft=column == 0, labelbottom=line == 1)
                axes.margins(y=0.12)
                if line:
                    axes.set_xlabel(f"({table[-1]}) {what}")
                if column == 0:
                    axes.set_ylabel(AXES[metric])
        for axes in figure.axes:
            if not axes.get_lines():
                axes.tick_params(labelleft=False)
        handles = {
            label: handle
            for axes in figure.axes
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        figure.legend(
            handles.values(), handles, loc="lower center", bbox_to_anchor=(0.5, 0.06 / height), ncols=3,
            frameon=False, fontsize=8.5,
        )  # fmt: skip
    return figure


def _curve(axes: Axes, rows: Mapping[int, Row]) -> None:
    known = {place: row for place, row in sorted(rows.items()) if row.value is not None}
    if not known:
        needs = ", ".join(dict.fromkeys(str(each) for row in rows.values() for each in row.needs))
        axes.text(
            0.5, 0.5, f"no value yet: needs\n{needs}" if needs else "no value yet", transform=axes.transAxes,
            ha="center", va="center", fontsize=8, color="#555555", bbox={"facecolor": "white", "edgecolor": "none"},
        )  # fmt: skip
        return
    values = [row.value for row in known.values() if row.value is not None]
    axes.plot(
        list(known), values, color=COLOURS[0], marker="o", markersize=5, linewidth=1.4,
        label="fine-tuned, 95 % interval",
    )  # fmt: skip
    for place, row in known.items():
        if row.ci_low is not None and row.ci_high is not None:
            axes.vlines(place, row.ci_low, row.ci_high, color=COLOURS[0], linewidth=1.1, alpha=0.6)


def _level(axes: Axes, row: Row) -> None:
    for value, name, line in ((row.value, "", "-"), (row.paper, " (the paper's)", ":")):
        if value is not None:
            axes.axhline(value, color=COLOURS[1], linestyle=line, linewidth=1.4, label=f"{row.method}, zero-shot{name}")

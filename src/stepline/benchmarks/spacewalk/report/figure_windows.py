"""Values against window length, as in Figures 3 and 4 of the paper."""

from collections.abc import Sequence
from string import ascii_lowercase

import matplotlib
from matplotlib.figure import Figure

from stepline.benchmarks.spacewalk.report.figure_contexts import AXES, styles
from stepline.report.figures import STYLE, draw_curves, draw_legend, has_number
from stepline.tables import Row, context_name


def windows(rows: Sequence[Row], panels: Sequence[tuple[str, str, str]]) -> Figure:
    """Draw a panel per (table, metric, title): value against window length, a curve per method.

    Filled markers are our values with the 95 % interval, hollow markers the paper's. Each table is drawn on its last
    release, which the panel names.
    """
    width, height = 3.9 * len(panels) + 0.5, 4.2
    drawn: list[Row] = []
    tables = {table for table, _, _ in panels}
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height))
        grid = figure.add_gridspec(
            1, len(panels), left=0.65 / width, right=1 - 0.15 / width, top=1 - 0.4 / height, bottom=1.15 / height,
            wspace=0.21,
        )  # fmt: skip
        style = styles([row for row in rows if row.table in tables])
        for place, (table, metric, title) in enumerate(panels):
            release = next((row.release for row in reversed(rows) if row.table == table), "")
            part = [row for row in rows if (row.table, row.release, row.metric) == (table, release, metric)]
            part = [row for row in part if row.context_s is not None and has_number(row)]
            contexts = sorted({row.context_s for row in part if row.context_s is not None})
            axes = figure.add_subplot(grid[0, place])
            methods = {row.method for row in part}
            draw_curves(axes, part, {name: look for name, look in style.items() if name in methods}, contexts)
            axes.set_xlim(-0.5, max(len(contexts), 1) - 0.5)
            axes.set_xticks(range(len(contexts)), [context_name(context) for context in contexts])
            axes.tick_params(length=2, labelsize=8)
            axes.margins(y=0.06)
            axes.set_ylabel(AXES[metric], labelpad=2)
            name = f"({ascii_lowercase[place]}) {title}{release and f', release {release}'}"
            axes.set_title(name, fontsize=9.5, fontweight="bold")
            if not part:
                axes.set_yticks([])
                axes.text(0.5, 0.5, "no number", transform=axes.transAxes, ha="center", color="#555555")
            drawn += part
        figure.supxlabel("window length", fontsize=9, y=0.66 / height)
        draw_legend(figure, drawn, style, height)
    return figure

"""Figures of planning: scores against plan length, and predicted plans below the true plans."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from stepline.report.figures import COLOURS, MARKERS, STYLE, draw_curves, draw_legend, has_number
from stepline.tables import Row, measures

HORIZON = "T="
"""Prefix of the setting of rows with a horizon; the number of actions follows."""


def horizons(rows: Sequence[Row], metric: str) -> Figure:
    """Draw a metric of a table's rows against the horizon, one curve per method and modality.

    Filled markers are our values with 95 % intervals. Hollow markers are the paper's values; bounds such as ``<0.01``
    are not drawn.
    """
    part = [
        replace(row, method=" ".join(filter(None, [row.method, row.modality])), entry="", context_s=_horizon(row))
        for row in rows
        if row.metric == metric and row.setting.startswith(HORIZON) and has_number(row)
    ]
    lengths = sorted({row.context_s for row in part if row.context_s is not None})
    methods = dict.fromkeys(row.method for row in part)
    style = dict(zip(methods, zip(cycle(COLOURS), cycle(MARKERS), strict=False), strict=False))
    width, height = 8.4, 4.0
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width, height))
        axes = figure.add_axes((0.6 / width, 1.15 / height, 1 - 0.75 / width, 1 - 1.3 / height))
        draw_curves(axes, part, style, lengths)
        axes.set_xlim(-0.5, max(len(lengths), 1) - 0.5)
        axes.set_xticks(range(len(lengths)), [f"{length:g}" for length in lengths])
        axes.set_ylim(bottom=-0.03 * axes.get_ylim()[1])
        axes.tick_params(length=2)
        axes.set_xlabel("horizon (actions)")
        axes.set_ylabel(f"{measures(rows)[metric].title} (%)")
        draw_legend(figure, part, style, height)
    return figure


def _horizon(row: Row) -> float:
    """Return the horizon of a row, which replaces the window length on the axis of the curves."""
    return float(row.setting.removeprefix(HORIZON))


@dataclass(frozen=True, kw_only=True)
class PlannedWindow:
    """The T true actions of a window and the T predicted actions of each method; None: not in the action pool."""

    title: str
    true: tuple[str, ...]
    plans: Mapping[str, tuple[str | None, ...]]

    @property
    def said(self) -> str:
        """The plans as text."""
        named = (f"{name}: {', '.join(map(str, steps))}" for name, steps in self.plans.items())
        return "; ".join([f"{self.title}: {', '.join(self.true)}", *named])


WIDTH, NAMES, GAP = 10.0, 1.5, 0.06
"""Inches: the width of the figure, the width of the method names, and the gap between boxes."""
FONT = 8
LINE, CHARACTER = 1.35 * FONT / 72, 0.68 * FONT / 72
"""Inches: the height of a line of text, and the width of a wide letter."""
SIGN = 0.2
"""Inches: the width of the sign of a correct or wrong step in a box."""
TRUE, RIGHT, WRONG = ("", "#e8e8e8", "#222222"), ("✓", "#d3efe5", "#00694d"), ("✗", "#fbe3d3", "#a04600")
"""Sign, fill and text colour of a box; fills are tints of COLOURS."""


def plans(shown: Sequence[PlannedWindow]) -> Figure:
    """Draw windows: the true plan as a row of boxes, one per step, and each method's plan below it.

    A step is correct if the true plan has the same action at this step. Boxes of correct steps are green with a tick,
    others are orange with a cross.
    """
    steps = max((len(window.true) for window in shown), default=1)
    box = (WIDTH - NAMES) / steps
    columns = int((box - GAP - SIGN - 0.06) / CHARACTER)
    tracks = [(window, {"true plan": window.true, **window.plans}) for window in shown]
    wrapped = [
        {
            name: [textwrap.wrap(step or "(no action of the pool)", columns) for step in plan]
            for name, plan in of.items()
        }
        for _, of in tracks
    ]
    heights = [{name: LINE * max(map(len, plan)) + 0.12 for name, plan in of.items()} for of in wrapped]
    height = sum(0.32 + sum(each.values()) + GAP * len(each) + 0.14 for each in heights) + 0.1
    with matplotlib.rc_context({**STYLE, "font.size": FONT}):
        figure = Figure(figsize=(WIDTH, height))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, WIDTH)
        axes.set_ylim(height, 0)
        top = 0.1
        for (window, of), lines, tall in zip(tracks, wrapped, heights, strict=True):
            axes.text(0.1, top + 0.16, window.title, fontsize=FONT + 1, fontweight="bold", va="center")
            top += 0.32
            for name, plan in of.items():
                axes.text(NAMES - 0.12, top + tall[name] / 2, name, ha="right", va="center")
                for place, step in enumerate(plan):
                    look = TRUE if name == "true plan" else RIGHT if step == window.true[place] else WRONG
                    left = NAMES + place * box
                    _box(axes, (left, top, box - GAP, tall[name]), "\n".join(lines[name][place]), look)
                top += tall[name] + GAP
            top += 0.14
    return figure


def _box(axes: Axes, place: tuple[float, float, float, float], text: str, look: tuple[str, str, str]) -> None:
    left, top, width, height = place
    sign, fill, colour = look
    axes.add_patch(Rectangle((left, top), width, height, facecolor=fill, edgecolor=colour, linewidth=0.8))
    axes.text(left + 0.06, top + height / 2, sign, va="center", color=colour, fontweight="bold")
    axes.text(left + (SIGN if sign else 0.06), top + height / 2, text, va="center", color="#222222", linespacing=1.15)

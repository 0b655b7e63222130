"""Figure of labels and predictions over a recording's time."""

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from stepline.report.figures import STYLE


def timeline(times_s: Sequence[float], labels: Sequence[int], tracks: Mapping[str, Sequence[int | None]]) -> Figure:
    """Draw a recording's labels over time as a strip, and a strip of predictions per method below it.

    times_s: (N,) ascending. labels: (N,); 0 is Irrelevant, 1..K are steps. tracks: (N,) predictions per method; None is
    a uniform guess. Each time shows the nearest sample.
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
    """Write the step's number on the stretches that are wide enough."""
    edges = np.flatnonzero(np.diff(labels)) + 1
    for left, right in zip([0, *edges], [*edges, len(labels)], strict=True):
        label = labels[left]
        if label > 0 and right - left >= 0.018 * len(labels):
            colour = "black" if label > 0.6 * steps else "white"
            axes.text((at[left] + at[right - 1]) / 2, 0, str(label), ha="center", va="center", color=colour, fontsize=7)

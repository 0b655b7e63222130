"""Durations of clips before and after merging, as in Figure A2 of the paper."""

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from stepline.report.figures import COLOURS, STYLE

TICKS_S = {0.1: "0.1 s", 1: "1 s", 10: "10 s", 60: "1 min", 600: "10 min", 3600: "1 h"}
BINS_PER_DECADE = 8


class Durations(NamedTuple):
    """Durations in seconds, with a title. reason: why there are none."""

    title: str
    seconds: Sequence[float]
    reason: str = ""


def durations(parts: Sequence[Durations]) -> Figure:
    """Draw a histogram of each part's durations, one below the other, with one logarithmic axis."""
    known = [value for part in parts for value in part.seconds]
    low, high = (min(known), max(known)) if known else (1.0, 60.0)
    middle = (low * high) ** 0.5
    low, high = min(low, middle / 5), max(high, 5 * middle)
    first, last = np.floor(np.log10(low) * BINS_PER_DECADE), np.ceil(np.log10(high) * BINS_PER_DECADE)
    edges = 10 ** (np.arange(first, max(last, first + 1) + 1) / BINS_PER_DECADE)
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 2.3 * len(parts) + 0.4), layout="constrained")
        for place, part in enumerate(parts):
            axes = figure.add_subplot(len(parts), 1, place + 1)
            axes.set_xscale("log")
            axes.set_xlim(edges[0], edges[-1])
            ticks = [tick for tick in TICKS_S if edges[0] <= tick <= edges[-1]]
            axes.set_xticks(ticks, [TICKS_S[tick] for tick in ticks])
            axes.minorticks_off()
            axes.tick_params(length=2, labelbottom=place == len(parts) - 1)
            axes.set_title(part.title, loc="left", fontsize=9.5, fontweight="bold")
            axes.set_ylabel("clips")
            axes.set_axisbelow(True)
            if part.seconds:
                axes.hist(part.seconds, bins=edges.tolist(), color=COLOURS[place], edgecolor="white", linewidth=0.5)
                median, mean = np.median(part.seconds), np.mean(part.seconds)
                axes.axvline(float(median), color="#222222", linewidth=1.2)
                axes.axvline(float(mean), color="#222222", linewidth=1.2, linestyle=":")
                axes.text(
                    0.99, 0.95, f"{len(part.seconds):,} clips\nmedian {median:.1f} s (line)\nmean {mean:.1f} s (dots)",
                    transform=axes.transAxes, ha="right", va="top", fontsize=8.5,
                )  # fmt: skip
            else:
                axes.set_yticks([])
                axes.text(
                    0.5, 0.5, part.reason, transform=axes.transAxes, ha="center", va="center", fontsize=8.5,
                    color="#555555", wrap=True,
                )  # fmt: skip
        figure.supxlabel("duration", fontsize=9)
    return figure

"""The figures of single tables: what is drawn, from which release, hollow or filled, and why something is not."""

import math
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from matplotlib.figure import Figure

from stepline.benchmarks.spacewalk.report.figure_durations import Durations, durations
from stepline.benchmarks.spacewalk.report.figure_sizes import sizes
from stepline.benchmarks.spacewalk.report.figure_windows import windows
from stepline.needs import Need
from stepline.report.figures import render
from stepline.tables import Row
from tests.report.figures import line, points
from tests.tables.numbers import build

PAPER = """\
table,method,modality,setting,context_s,metric,split,paper,rerun,decimals,tolerance,tolerance_source,evidence,note
A6,EgoVLP,V+L,last-layer,60,accuracy,test,6.65,6.34,2,1,a rerun,,
A6,EgoVLP,V+L,last-layer,1200,accuracy,test,7.53,,2,1,a rerun,,
"""


@pytest.fixture
def rows(tmp_path: Any) -> list[Row]:
    (tmp_path / "paper.csv").write_text(PAPER)
    asked = [line(value, context_s=length) for length, value in ((60.0, 10.0), (300.0, 11.0))]
    asked += [line(99.0, release="v0"), line(50.0, table="A7", release="v1", context_s=10.0)]
    return build(sorted(asked, key=lambda each: each.release), tmp_path / "paper.csv")


PANELS = [("A6", "accuracy", "Steps"), ("A6", "map", "Steps"), ("A7", "accuracy", "Retrieval")]


def test_ours_are_filled_and_the_papers_hollow_on_the_last_release(rows: list[Row]) -> None:
    figure = windows(rows, PANELS)
    drawn = points(figure, 0)
    assert sorted((hollow, values) for (_, hollow), values in drawn.items()) == [
        (False, [10.0, 11.0]),
        (True, [6.65, 7.53]),
    ]
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["(a) Steps, release v2", "(b) Steps, release v2", "(c) Retrieval, release v1"]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == ["1 min", "5 min", "20 min"]


def test_a_method_looks_the_same_in_every_panel(rows: list[Row]) -> None:
    figure = windows(rows, PANELS)
    (ours,) = [colour for colour, hollow in points(figure, 0) if not hollow]
    assert [colour for colour, _ in points(figure, 2)] == [ours]


def test_a_panel_without_numbers_says_so(rows: list[Row]) -> None:
    figure = windows(rows, PANELS)
    assert [text.get_text() for text in figure.axes[1].texts] == ["no number"]
    assert not figure.axes[0].texts
    assert windows([], PANELS).axes[0].get_title() == "(a) Steps"


AMOUNTS = {("A9a", "half"): 1000, ("A9a", "all"): 2000, ("A9b", "two"): 2}


def training() -> list[Row]:
    ours = {"table": "A9a", "setting": "all-layer"}
    asked = [
        line(12.0, **ours, entry="all", method="of 2000"),
        line(11.0, **ours, entry="half", method="of 1000"),
        line(None, **ours | {"table": "A9b"}, entry="two", needs=(Need("weights", "x"), Need("videos", "y"))),
    ]
    return build(asked, None)


def test_values_stand_over_the_amount_of_training_data(rows: list[Row]) -> None:
    before = [row for row in rows if row.entry == "a6" and row.release == "v2" and row.context_s == 60]
    figure = sizes(training(), AMOUNTS, before)
    curve, level = figure.axes[0].get_lines()
    assert (list(curve.get_xdata()), list(curve.get_ydata())) == ([0, 1], [11.0, 12.0])  # type: ignore[arg-type]
    assert list(level.get_ydata()) == [10.0, 10.0]  # type: ignore[arg-type]
    assert level.get_linestyle() == "-"
    assert [tick.get_text() for tick in figure.axes[1].get_xticklabels()] == ["1000", "2000"]
    assert [text.get_text() for text in figure.axes[2].texts] == ["no value yet: needs\nweights:x, videos:y"]
    assert [text.get_text() for text in figure.axes[3].texts] == ["no value yet"]


def test_the_line_without_training_is_also_the_papers(rows: list[Row]) -> None:
    before = [row for row in rows if row.printed and row.release == "v2" and row.context_s == 60]
    (level,) = sizes([], {}, before).axes[0].get_lines()
    assert list(level.get_ydata()) == [6.65, 6.65]  # type: ignore[arg-type]
    assert level.get_label() == "EgoVLP, zero-shot (the paper's)"
    assert level.get_linestyle() == ":"


def test_every_duration_is_in_a_bin_of_a_logarithmic_axis() -> None:
    seconds = [0.5, 1.0, 1.0, 9.99, 10.0, 3599.0]
    figure = durations([Durations("Before", [], "no videos"), Durations("After", seconds)])
    before, after = figure.axes
    assert sum(patch.get_height() for patch in after.patches) == len(seconds)  # type: ignore[attr-defined]
    widths = [math.log10((p.get_x() + p.get_width()) / p.get_x()) for p in after.patches]  # type: ignore[attr-defined]
    assert widths == pytest.approx([widths[0]] * len(widths))
    assert after.get_xscale() == "log"
    few = durations([Durations("Alike", [5.4, 5.5])]).axes[0]
    assert [tick.get_text() for tick in few.get_xticklabels()] == ["1 s", "10 s"]
    assert [text.get_text() for text in before.texts] == ["no videos"]
    assert [text.get_text() for text in after.texts] == ["6 clips\nmedian 5.5 s (line)\nmean 603.6 s (dots)"]


@pytest.mark.parametrize(
    "draw",
    [
        lambda rows: windows(rows, PANELS),
        lambda rows: sizes(training(), AMOUNTS, []),
        lambda rows: durations([Durations("a", [1.0, 2.0]), Durations("b", [])]),
    ],
)
def test_the_same_rows_give_the_same_bytes(draw: Callable[[list[Row]], Figure], rows: list[Row]) -> None:
    first = render(draw(rows))
    assert first == render(draw(rows))
    assert first.startswith(b"<?xml")
    assert b"<dc:date" not in first

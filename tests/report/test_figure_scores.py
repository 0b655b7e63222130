from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepline.report.figure_scores import scores
from stepline.tables import Number
from tests.report.figures import line
from tests.tables.numbers import SAMPLE_LIST, build

BOUND = """\
table,method,modality,setting,context_s,metric,split,paper,rerun,decimals,tolerance,tolerance_source,evidence,note
A6,Random,,,60,base_sr,test,<0.01,,2,,,,
A6,PDPP*,,,60,base_sr,test,30.76,,2,,,,
"""


def planner(method: str, metric: str, value: float | None) -> Number:
    measured: dict[str, Any] = {"metrics": {metric: {"value": value, "ci": None, "sd": None, "seeds": []}}}
    score = None if value is None else measured
    return line(None, method=method, modality="", setting="", metric=metric, score=score)


def test_a_method_has_its_line_with_ours_its_interval_and_the_papers() -> None:
    rows = build([line(50.0), line(None, method="EgoVLP")], None)
    axes = scores(rows, "accuracy").axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["InternVideo, V+L, last-layer"]
    interval, value, *_ = axes.get_lines()
    assert list(interval.get_xdata()) == [49, 52]
    assert list(value.get_xdata()) == [50]


@pytest.mark.parametrize(
    ("value", "names", "drawn"), [(0.001, ["Random", "PDPP*"], [[0.001], [30.76]]), (None, ["PDPP*"], [[30.76]])]
)
def test_a_bound_of_the_paper_is_no_point(tmp_path: Path, value: Any, names: list[str], drawn: Any) -> None:
    (tmp_path / "paper.csv").write_text(BOUND)
    rows = build([planner("Random", "base_sr", value), planner("PDPP*", "base_sr", None)], tmp_path / "paper.csv")
    axes = scores(rows, "base_sr").axes[0]
    assert [label.get_text() for label in axes.get_yticklabels()] == names
    assert [list(each.get_xdata()) for each in axes.get_lines()][:-2] == drawn


def test_ours_is_filled_and_the_papers_hollow_beside_the_name_of_the_method(tmp_path: Path) -> None:
    (tmp_path / "paper.csv").write_text(BOUND)
    asked = [planner("Random", "base_sr", 0.5), replace(planner("PDPP*", "base_sr", 29.0), sees=(SAMPLE_LIST,))]
    axes = scores(build(asked, tmp_path / "paper.csv"), "base_sr").axes[0]
    points = [(*each.get_ydata(), *each.get_xdata(), each.get_markerfacecolor() == "none") for each in axes.get_lines()]
    assert points[:-2] == [(0, 0.5, False), (1, 29.0, False), (1, 30.76, True)]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["Random", "PDPP* *"]
    assert axes.get_ylim() == (1.5, -0.5), "the first is on top"
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["ours, 95 % interval", "the paper's"]
    assert [line.get_markerfacecolor() == "none" for line in axes.get_legend().get_lines()] == [False, True]


@pytest.mark.parametrize(
    ("metric", "name"), [("videos", "Videos"), ("duration", "Duration (mean, s)"), ("base_sr", "Base SR (%)")]
)
def test_only_percentages_are_labelled_so(metric: str, name: str) -> None:
    assert scores(build([planner("Train", metric, 43)], None), metric).axes[0].get_xlabel() == name

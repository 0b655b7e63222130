"""The page of a study: a figure for each table and release, its values in words, a figure as a file."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from stepline.report import Picture, study
from stepline.report.figure_scores import scores
from stepline.report.figures import render
from stepline.report.study import write_figure, write_study
from stepline.tables import Row, groups, measures
from tests.tables.numbers import PAPER, SAMPLE_LIST, build, number, score


def rows() -> list[Row]:
    asked = [number(), number(metric="map"), number(table="3b", release="v1", method="Other", sees=(SAMPLE_LIST,))]
    return build(asked, None)


def page(path: Path, rows: Sequence[Row], **more: Any) -> str:
    texts = dict.fromkeys(("how_to_read", "examples", "examples_title", "how_to_read_examples"), "")
    write_study(
        path / "report.html", rows, **{"title": "A study", "figures": first_metric, "explain": explain} | texts | more
    )
    return (path / "report.html").read_text()


def explain(row: Row) -> str:
    return f"stepline explain {row.entry}"


def first_metric(part: Sequence[Row]) -> dict[str, Figure]:
    metric = next(iter(measures(part)))
    return {metric: scores(part, metric)}


def captions(text: str) -> list[str]:
    return re.findall("<figcaption>(.*?)</figcaption>", text)


def headings(text: str) -> list[str]:
    return re.findall("<h2>(.*?)</h2>", text)


def alts(text: str) -> list[str]:
    return re.findall(r'<img [^>]*alt="([^"]*)"', text)


def test_a_table_on_a_release_is_drawn_by_its_first_metric(tmp_path: Path) -> None:
    text = page(tmp_path, rows())
    assert headings(text)[:3] == ["Table 2a on v0: Step recognition", "How to read", "Other tables"]
    assert "<h3>Table 3b on v1: Step recognition</h3>" in text
    assert captions(text) == []
    assert alts(text) == [
        "Acc in percent: MiniLM L zero-shot 1 min 11.22.",
        "Acc in percent: Other L zero-shot 1 min 11.22.",
    ]
    assert 'id="timelines"' not in text
    assert 'id="spread"' not in text
    assert text == page(tmp_path, rows())


@pytest.mark.parametrize(
    ("values", "first"),
    [((1.0, 2.0, 3.0), "2a on v1"), ((1.0, 2.0, None), "2a on v2"), ((None, None, None), "3b on v0")],
)
def test_the_first_table_with_a_figure_stands_first_on_its_last_release_with_one(
    tmp_path: Path, values: tuple[float | None, ...], first: str
) -> None:
    asked = [
        number(release=release, score=None if value is None else score(value))
        for release, value in zip(("v0", "v2", "v1"), values, strict=True)
    ]
    text = page(tmp_path, build([number(table="1", score=None), *asked, number(table="3b")], None))
    assert headings(text)[0] == f"Table {first}: Step recognition"


def test_a_benchmark_draws_its_own_figures_which_name_their_metrics(tmp_path: Path) -> None:
    def figures(part: Sequence[Row]) -> dict[str, Figure]:
        return {m: scores(part, m) for m in ("map", "accuracy")} if part[0].table == "2a" else {}

    text = page(tmp_path, rows(), figures=figures)
    assert captions(text) == ["mAP", "Acc"]
    assert alts(text)[0] == "mAP in percent: MiniLM L zero-shot 1 min 12.00."


def test_a_count_is_no_percentage_and_what_has_no_number_is_not_drawn(tmp_path: Path) -> None:
    counted = number(table="8", metric="videos", context_s=None, score={"metrics": {"videos": {"value": 43}}})
    text = page(tmp_path, build([counted, number(table="9", score=None)], None))
    assert alts(text) == ["Videos: MiniLM L zero-shot 43."]
    (tmp_path / "paper.csv").write_text(PAPER)
    text = page(tmp_path, build([number(score=None)], tmp_path / "paper.csv"))
    assert alts(text) == ["Acc in percent: nothing computed yet."]


def test_a_metric_without_a_number_is_not_drawn(tmp_path: Path) -> None:
    asked = [number(score=None), number(metric="map"), number(table="3b", score=None)]
    text = page(tmp_path, build(asked, None))
    assert alts(text) == ["mAP in percent: MiniLM L zero-shot 1 min 12.00."]


def test_of_many_values_the_highest_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "VALUES_SAID", 2)
    asked = [number(method=str(value), score=score(value)) for value in (10.0, 30.0, 20.0)]
    assert alts(page(tmp_path, build(asked, None))) == [
        "Acc in percent: 3 values, listed in the tables below; the highest is 30.0 L zero-shot 1 min 30.00."
    ]


def test_the_first_figure_of_rows_is_a_file(tmp_path: Path) -> None:
    svg = tmp_path / "table.svg"
    write_figure(svg, rows(), first_metric)
    first = next(iter(groups(rows()).values()))
    assert svg.read_bytes() == render(scores(first, "accuracy"))
    assert b"<dc:date" not in svg.read_bytes()
    write_figure(svg, build([number(score=None)], None), first_metric)
    assert svg.read_bytes() == render(Figure())


def test_the_mark_of_a_truncated_number_is_explained(tmp_path: Path) -> None:
    explained = "<dt>…</dt><dd>after a number: the paper truncates digits instead of rounding</dd>"
    for truncated in (True, False):
        text = page(tmp_path, [replace(row, printed="1.2", truncated=truncated) for row in rows()])
        assert [explained in text, ">1.2…</td>" in text] == [truncated] * 2


def test_examples_stand_below_the_tables(tmp_path: Path) -> None:
    example = Picture("data:,x", "Plans of a video", "A video")
    text = page(tmp_path, rows(), examples=[example], how_to_read_examples="The top row.", examples_title="Plans")
    assert text.index("<h2>Plans</h2>\n<p>The top row.</p>") > text.index("<h2>Other tables</h2>")
    assert captions(text)[-1] == "A video"

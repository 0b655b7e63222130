from dataclasses import replace
from pathlib import Path

import pytest

from stepline.runs.report import explanation, figures, write_picture, write_report
from stepline.runs.table import table_rows
from tests.benchmark.tiny import Tiny, declared, tiny, write_releases
from tests.runs.test_table import compute


@pytest.fixture
def made(tmp_path: Path) -> Tiny:
    write_releases()
    made = tiny(tmp_path)
    for file in made.tables:
        compute(made, file)
    return made


def test_the_page_shows_each_table_on_each_release(made: Tiny) -> None:
    write_report(made, Path("r.html"))
    page = Path("r.html").read_text()
    assert "<title>Tiny: results</title>" in page
    for table, title in (("1", "Guesses"), ("2", "Others")):
        for release in ("first", "second"):
            assert f"Table {table} on {release}: {title}" in page
    for line in ("table1.csv three", "table2.csv four", "table2.csv three"):
        assert f"stepline explain results/tiny/{line} all second" in page
    write_report(made, Path("again.html"))
    assert Path("again.html").read_text() == page


def test_a_number_with_predictions_has_a_command_that_explains_it(made: Tiny) -> None:
    table = Path("results/tiny/table 1.csv")
    found = {(row.entry, row.release): explanation(table, row) for row in table_rows(made, "table1")}
    assert {key for key, command in found.items() if not command} == {
        (entry, release) for entry in ("fitted",) for release in ("first", "second")
    }
    row = next(row for row in table_rows(made, "table1") if row.entry == "drawn")
    assert explanation(table, replace(row, context_s=180)) == (
        "stepline explain 'results/tiny/table 1.csv' drawn 180s first"
    )
    assert explanation(table, replace(row, spec="")) == explanation(table, replace(row, status="needs")) == ""


def test_a_benchmark_says_what_else_it_shows(made: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Tiny, "about", "of numbers")
    monkeypatch.setattr(Tiny, "how_to_read", "Read it.")
    monkeypatch.setattr(Tiny, "page", lambda self, rows: {"examples_title": f"{len(rows)} rows"})
    write_report(made, Path("r.html"))
    page = Path("r.html").read_text()
    assert "Tiny: of numbers" in page
    assert "Read it." in page


def test_a_table_is_drawn_by_the_first_metric_that_is_named(made: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row for row in table_rows(made, "table1") if row.release == "first"]
    assert [*figures(made, rows)] == ["error"]
    monkeypatch.setattr(Tiny, "drawn", ("n", "near"))
    assert [*figures(made, rows)] == ["near"], "counts are not drawn"
    monkeypatch.setattr(Tiny, "metrics", Tiny.metrics | {"near": replace(Tiny.metrics["near"], unit="")})
    assert [*figures(made, table_rows(made, "table1"))] == ["error"], "only percentages are drawn"
    monkeypatch.setattr(Tiny, "figures", lambda self, rows: {row.metric: None for row in rows})
    assert [*figures(made, rows)] == ["error", "near"], "a benchmark can draw itself"


def test_a_picture_is_of_the_first_table_of_its_file(
    made: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [{"entry": "three", "method": "Three"}]
    more = {"title": "More", "metrics": ["error"], "target": "table1", "lines": lines}
    made = tiny(tmp_path / "two", declared(tables={"table3": more}))
    drawn = []
    original = Tiny.figures
    monkeypatch.setattr(Tiny, "figures", lambda self, rows: drawn.append(rows) or original(self, rows))
    write_picture(made, "table1")
    assert Path("results/tiny/table1.svg").read_text().startswith("<?xml")
    assert [{(row.table, row.release) for row in rows} for rows in drawn] == [{("1", "second")}]

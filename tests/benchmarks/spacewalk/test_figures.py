"""Figures 3, 4 and A9 of a study: from which tables, and how much each line of an ablation is trained on."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from stepline import paths
from stepline.benchmarks.spacewalk import figures, presentation
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.report import figure_sizes
from stepline.config import validate
from stepline.tables import Number, Row
from tests.tables.numbers import build, number

FEW = {
    "table": "A9a", "method": "TF-IDF (500 samples)", "modality": "L", "setting": "all-layer", "kind": "tfidf",
    "encoder": "tfidf", "settings": {"fit": "train"}, "inputs": ["window", "train"], "protocol": "beyond",
}  # fmt: skip
ALL = FEW | {"table": "A9b", "method": "TF-IDF (all)"}


def line(entry: str, table: str, value: float, **changes: Any) -> Number:
    base: dict[str, Any] = {
        "table": table, "title": table, "entry": entry, "method": "TF-IDF", "modality": "L", "setting": "zero-shot",
        "release": "v2", "score": {"metrics": {"accuracy": {"value": value}}, "status": "present"},
    }  # fmt: skip
    return number(**(base | changes))


def test_a_line_of_an_ablation_stands_at_its_setting_or_at_all_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = {"kind": "all-layer", "encoder": "internvideo-spacewalk"}
    entries = {
        "few": FEW | kind | {"settings": {"samples_per_video": 500, "videos": 7}},
        "all": ALL,
        "both": {"table": "A9b", "method": "TF-IDF (both)", "same_as": "few"},
    }
    plan = Spacewalk.of(validate({"spacewalk": {"text_encoders": ["tfidf"], "entries": entries}}), "spacewalk")
    lines = {
        "tableA9": [
            line("few", "A9a", 11.0, method="TF-IDF (500 samples)", setting="all-layer"),
            line("few", "A9a", 10.0, method="TF-IDF (500 samples)", setting="all-layer", release="v0"),
            line("all", "A9b", 12.0, method="TF-IDF (all)", setting="all-layer"),
            line("few", "A9b", 13.0, method="TF-IDF (both)", setting="all-layer"),
        ],
        "table2": [
            line("zero", "2a", 9.0),
            line("zero", "2a", 8.0, release="v0"),
            line("zero", "2a", 7.0, context_s=180.0),
            line("other", "2a", 6.0, method="MiniLM"),
            line("last", "2a", 5.0, setting="last-layer"),
        ],
        "tableA6": [line("zero", "A6", 4.0)],
    }
    monkeypatch.setattr(figures, "table_rows", lambda plan, file: build(lines.get(file, []), None))
    drawn: dict[str, Any] = {}
    draw = figure_sizes.sizes

    def sizes(rows: list[Row], amounts: dict[tuple[str, str], int], before: list[Row]) -> Any:
        drawn.update(values=[row.value for row in rows], amounts=amounts, before=[row.value for row in before])
        return draw(rows, amounts, before)

    monkeypatch.setattr(figure_sizes, "sizes", sizes)
    figures.write_figures(plan)
    assert drawn["values"] == [11.0, 12.0, 13.0]
    assert drawn["amounts"] == {("A9a", "few"): 500, ("A9b", "all"): 10, ("A9b", "few"): 7}
    assert drawn["before"] == [9.0]
    for name in ("figure3", "figure4", "figureA9"):
        assert Path(f"results/spacewalk/{name}.svg").read_bytes().startswith(b"<?xml")


def test_panels_are_of_metrics_that_their_tables_have() -> None:
    tables = Spacewalk.of(validate({"spacewalk": {}}), "spacewalk").declared.tables
    known = {(table.name, metric) for table in tables for metric in table.metrics}
    assert {(table, metric) for panels in figures.PANELS.values() for table, metric, _ in panels} <= known


def test_figures_are_drawn_from_the_configured_tables() -> None:
    def plan(**changes: Any) -> Spacewalk:
        given = {"text_encoders": ["tfidf"], "releases": ["v2"]} | changes
        return Spacewalk.of(validate({"spacewalk": given}), "spacewalk")

    files = presentation.figure_inputs(plan())
    assert paths.scores("spacewalk", "v2", "2a-tfidf-zero-shot", "1200s") in files
    fewer = plan(tables=["table2"])
    assert presentation.figure_tables(fewer) == ["table2"]
    assert paths.scores("spacewalk", "v2", "2a-tfidf-zero-shot", "1200s") not in presentation.figure_inputs(fewer)
    assert presentation.figure_params(plan()) != presentation.figure_params(fewer)
    assert presentation.figure_params(plan()) != presentation.figure_params(plan(metrics={"bootstrap_seed": 9}))

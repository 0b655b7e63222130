from pathlib import Path

import pytest

from stepline import paths
from stepline.benchmarks.pss.benchmark import Pss
from stepline.io import write_json
from stepline.needs import Need
from stepline.runs.report import write_report
from stepline.runs.table import table_rows
from tests.benchmarks.pss.conftest import plan
from tests.runs.test_table import compute


@pytest.mark.usefixtures("releases")
def test_sentences_are_scored_where_they_are_written() -> None:
    made = plan()
    compute(made, "table2")
    rows = {(row.entry, row.metric): row for row in table_rows(made, "table2")}
    assert ("uniform-segments", "soda_c_stem") not in rows
    assert rows["frequent-uniform", "soda_c_stem"].value is not None
    assert rows["frequent-uniform", "soda_c"].needs == (Need("config", "pss.metrics.meteor", "true"),)
    assert rows["frequent-uniform", "soda_c"].command.endswith("--config 'pss={metrics: {meteor: true}}'")
    assert rows["frequent-uniform", "soda_d"].options_text == "duration=ceil_seconds;missing=zero;order=start_end"


@pytest.mark.usefixtures("banks")
def test_changed_training_cannot_be_compared_and_says_of_which_files() -> None:
    made = plan({"pdvc": {"epochs": 7, "hidden": 32}})
    measured = {"value": 36.8, "sd": 1.0, "ci": None, "seeds": [0], "n_videos": 4, "n_listed": 4}
    content = {"metrics": dict.fromkeys(Pss.metrics, measured), "needs": [], "selection": ""}
    for job in made.jobs("table2"):
        write_json(paths.scores("pss", job.release, job.entry.id, job.context), content)
    rows = {(row.entry, row.metric): row for row in table_rows(made, "table2")}
    row = rows["pdvc-r3d", "soda_d"]
    assert row.status == "not comparable"
    assert "epochs=7 (published: 30); hidden=32 (published: 512)" in row.note
    assert "imported files: features/r3d/imported-" in row.note
    assert "the released vocabulary was counted" not in row.note
    note = rows["pdvc-r3d", "soda_c_stem"].note
    assert "the released vocabulary was counted on validation and test videos too" in note


@pytest.mark.usefixtures("releases")
def test_the_page_shows_segments_over_time() -> None:
    made = plan({"tables": ["table1"], "releases": ["youcook2"]})
    compute(made, "table1")
    write_report(made, Path("report.html"))
    page = Path("report.html").read_text()
    assert page.count("<figure>") == 1 + 3
    assert "<title>PSS: ordered segmentation and summarisation</title>" in page
    assert "Segments of youcook2-test-0 over time: annotated " in page
    assert "; 8 or 10 parts 8" in page

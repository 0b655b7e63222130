"""The command of record on all real data, with TF-IDF as the one text encoder.

Of the lines that no paper has, those whose values are nowhere compared are made at one window length, or of one
release.
"""

import csv
import json
import re
from importlib.resources import files
from pathlib import Path

import pytest

from tests.workflow.runs import ELSEWHERE, TABLE, rows, run

pytestmark = pytest.mark.slow
FEWER: dict[str, dict[str, object]] = {
    "2a-linear-in-time": {"releases": ["v2"]},
    "2a-linear-after-preview": {"releases": ["v2"]},
    "2a-tfidf-zero-shot": {"releases": ["v2"]},
    "2a-tfidf-train-zero-shot": {"releases": ["v2"]},
    "2a-tfidf-stems-zero-shot": {"contexts": [300], "releases": ["v0", "v1"]},
    "2b-tfidf-zero-shot": {"contexts": [60], "releases": ["v0"]},
    "2b-tfidf-train-zero-shot": {"contexts": [60], "releases": ["v1"]},
}
CONFIG = {"text_encoders": ["tfidf"], "entries": ELSEWHERE | FEWER}
TFIDF_ALONE = "--config", f"spacewalk={json.dumps(CONFIG)}"
COLUMNS = (
    "table,entry,method,modality,setting,context_s,metric,value,paper,rerun,difference,release,split,protocol,inputs,options,value_sd,"
    "ci_low,ci_high,n_videos,n_listed,n_in_part,n_samples,n_queries,pool_used,pool_listed,seeds,spec,status,note,command"
)
KEY = ("table", "method", "modality", "setting", "context_s", "metric", "release", "options")

Row = dict[str, str]


@pytest.fixture(scope="module")
def folder(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work folder of the whole run."""
    made = tmp_path_factory.mktemp("table2")
    run(TABLE, *TFIDF_ALONE, folder=made, mirror=real_data, traced=True)
    return made


@pytest.fixture(scope="module")
def table(folder: Path) -> list[Row]:
    return rows(folder)


def values(table: list[Row], release: str, method: str, metric: str, part: str = "2a") -> list[float]:
    """Return the method's values by growing context."""
    found = [
        r for r in table if (r["table"], r["release"], r["method"], r["metric"]) == (part, release, method, metric)
    ]
    return [float(row["value"]) for row in sorted(found, key=lambda row: float(row["context_s"] or "inf"))]


def is_computed(row: Row) -> bool:
    return bool(row["value"]) and row["status"] != "reference"


def test_the_columns_are_those_that_are_documented(folder: Path, table: list[Row]) -> None:
    assert (folder / TABLE).read_text().splitlines()[0] == COLUMNS
    assert all(",".join(row) == COLUMNS for row in table)


def test_tfidf_is_as_measured_by_hand(table: list[Row]) -> None:
    assert values(table, "v2", "TF-IDF", "accuracy") == pytest.approx([12.40, 17.59, 19.03], abs=0.005)
    assert values(table, "v2", "TF-IDF", "map") == pytest.approx([13.99, 20.36, 23.95], abs=0.005)
    assert values(table, "v2", "TF-IDF (train)", "accuracy") == pytest.approx([12.27, 16.75, 19.68], abs=0.005)


@pytest.mark.parametrize("release", ["v0", "v1", "v2"])
def test_random_is_chance(release: str, table: list[Row]) -> None:
    accuracy = values(table, release, "Random", "accuracy")
    assert [f"{value:.2f}" for value in accuracy] == ["4.22"] * 3
    assert values(table, release, "Random", "accuracy", "2b") == ([] if release == "v2" else [50.0] * 6)


def test_baselines_that_see_no_content_are_as_measured_by_hand(table: list[Row]) -> None:
    assert values(table, "v2", "Linear in time", "accuracy") == pytest.approx([12.975], abs=0.0005)
    assert values(table, "v2", "Linear after the preview", "map") == pytest.approx([31.36], abs=0.005)
    assert values(table, "v2", "Sample rank", "accuracy") == pytest.approx([67.32], abs=0.005)
    assert values(table, "v0", "Equal segments", "accuracy", "2b") == pytest.approx([51.15], abs=0.005)
    assert values(table, "v1", "Equal segments", "accuracy", "2b") == pytest.approx([51.64], abs=0.005)


def test_every_number_of_the_paper_is_a_line(table: list[Row]) -> None:
    def key(row: Row) -> tuple[str, ...]:
        return (*(row[name] for name in KEY[:6]), row["paper"])

    text = files("stepline.benchmarks.spacewalk").joinpath("paper/table2.csv").read_text(encoding="utf-8")
    printed = [key(row) for row in csv.DictReader(text.splitlines())]
    assert len(set(printed)) == 121
    for release, tables in (("v0", ("2a", "2b")), ("v1", ("2a", "2b")), ("v2", ("2a",))):
        found = [key(row) for row in table if row["release"] == release and row["paper"]]
        assert sorted(found) == sorted(each for each in printed if each[0] in tables), release


def test_only_the_papers_own_release_is_compared(table: list[Row]) -> None:
    compared = {"exact", "within", "differs"}
    for row in table:
        assert row["status"] not in compared or row["release"] == "v0"
        assert bool(row["difference"]) == (row["status"] in compared)
    stated = [row for row in table if row["paper"]]
    assert {row["status"] for row in stated if row["release"] != "v0"} == {"not comparable", "needs", "reference"}
    assert {row["status"] for row in stated if row["release"] == "v0"} <= compared | {"needs", "reference"}
    wanting = {"LLM", "InternVideo", "TF-IDF and InternVideo"}
    assert {row["status"] for row in table if not row["paper"] and row["method"] not in wanting} == {"ours"}
    random = [row for row in stated if row["method"] == "Random" and row["release"] == "v0"]
    assert len(random) == 9
    assert {row["status"] for row in random} == {"exact"}


def test_a_line_is_one_number_and_unknown_values_are_empty(table: list[Row]) -> None:
    assert len({tuple(row[name] for name in KEY) for row in table}) == len(table)
    assert not [cell for row in table for cell in row.values() if cell.strip() in {"-", "None", "nan"}]
    for row in table:
        assert bool(row["value"]) == (row["status"] != "needs")
        assert bool(row["command"]) == (row["status"] == "needs" and "samples:" not in row["note"])
        assert row["status"] != "needs" or "needs" in row["note"]


def test_beside_a_value_stands_what_it_was_made_of(folder: Path, table: list[Row]) -> None:
    computed = [row for row in table if is_computed(row)]
    for row in computed:
        assert (row["split"], row["n_videos"], row["n_listed"]) == ("test", "6", "6")
        assert float(row["ci_low"]) <= float(row["value"]) <= float(row["ci_high"])
        assert row["spec"]
        fitted = "val" in row["inputs"].split(";")
        assert bool(row["seeds"]) == (fitted or (row["method"], row["metric"]) == ("Random", "map"))
        assert (row["n_samples"], row["pool_used"]) == (
            ("12000", "") if row["table"] == "2a" else ("", row["pool_listed"])
        )
    assert {row["inputs"] for row in computed if row["method"] == "Sample rank"} == {"sample_list"}
    predictions = list((folder / "results/spacewalk/predictions").glob("*/*/*.parquet"))
    assert len(predictions) == len(list((folder / "results/spacewalk/scores").glob("*/*/*.json")))
    assert len(predictions) == len({row["spec"] for row in computed})


def test_intervals_are_as_wide_as_six_recordings_allow(table: list[Row]) -> None:
    (row,) = [
        row
        for row in table
        if (row["method"], row["metric"], row["context_s"], row["release"]) == ("TF-IDF", "accuracy", "180", "v2")
    ]
    assert 2.0 < (float(row["ci_high"]) - float(row["ci_low"])) / 3.92 < 3.2


def test_the_same_tables_can_be_read(folder: Path) -> None:
    text = (folder / TABLE).with_suffix(".md").read_text()
    for part, release in (("2a", "v0"), ("2b", "v0"), ("2a", "v1"), ("2b", "v1"), ("2a", "v2")):
        assert re.search(rf"^## Table {part}: .*, release {release}: the paper's methods$", text, re.MULTILINE)
    assert "4.22 (4.22 [4.22]) =" in text

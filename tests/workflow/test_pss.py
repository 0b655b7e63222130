"""All of PSS on small releases with planted features: every fit, prediction, score and table, and what runs again."""

from pathlib import Path
from typing import Any

import pytest

from stepline.datasets import pss
from stepline.datasets.schema import SPLITS
from tests.benchmarks.pss.synthetic import CONFIG as SMALL
from tests.benchmarks.pss.synthetic import VIDEOS, write_banks, write_releases
from tests.workflow.runs import Study, rows

pytestmark = pytest.mark.slow
METEOR = {"meteor", "soda_c"}
ABSENT = {"pdvc-r3d", "pdvc-r3d-given", "pdvc-i3d"}
CONFIG: dict[str, Any] = SMALL | {
    "features": SMALL["features"] | {"r3d": ["not-there"], "i3d": ["not-there"]},
    "pdvc": SMALL["pdvc"] | {"seeds": [0]},
}
"""What two seeds are made of is seen in test_oepp; other features have the same kinds as those that are absent."""
STUDY = Study("pss", CONFIG)
TABLES = STUDY.results(*(f"table{number}.csv" for number in (1, 2, 3, 4)))
PAGES = STUDY.results("report.html", "worked_examples.html", "table2.svg", "all")


def write(folder: Path) -> None:
    """Write the releases and planted features."""
    write_releases()
    videos = {
        dataset: {each.video: each.segments for split in SPLITS for each in pss.load(dataset, split).values()}
        for dataset in pss.DATASETS
    }
    write_banks(folder, videos)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder in which all four tables and the pages are made."""
    return STUDY.whole(tmp_path_factory, write, *TABLES, *PAGES)


def test_every_line_whose_features_are_there_has_a_number(whole: Path) -> None:
    found = [row for table in TABLES for row in rows(whole, table)]
    assert {row["table"] for row in found} == {"1", "2", "3", "4"}
    for row in found:
        if row["entry"] in ABSENT:
            assert (row["status"], row["value"]) == ("needs", "")
            continue
        if row["metric"] in METEOR:
            assert (row["status"], row["value"]) == ("needs", "")
            assert row["command"].endswith("--config 'pss={metrics: {meteor: true}}'")
            continue
        assert row["status"] in ("differs", "within", "exact", "not comparable", "ours"), row
        assert 0 <= float(row["value"]) <= (1000 if row["metric"] == "cider" else 100)
        assert row["n_videos"] == row["n_listed"] == str(VIDEOS["test"] * (1 + (row["split"] == "val+test")))


def test_trained_lines_say_how_they_were_fitted(whole: Path) -> None:
    trained = [row for row in rows(whole, TABLES[1]) if row["method"] == "PDVC" and row["value"]]
    assert len(trained) == 4 * 2
    assert len(STUDY.fits(whole)) == 7 + 2
    for row in trained:
        assert row["seeds"] == "0"
        assert row["entry"].startswith(("pdvc-", "soda-", "softsoda-"))
        assert "fitted on 10 of 10 training videos; epoch of the best validation score" in row["note"]
    (options,) = {row["options"] for row in trained if row["modality"] == "TSN" and row["metric"] == "soda_d"}
    chosen = dict(option.split("=") for option in options.split(";"))
    assert chosen.items() >= {"features": "tsn-a+tsn-b", "missing": "zero", "order": "start_end", "epochs": "2"}.items()


def test_a_table_shows_the_same_fit_as_another(whole: Path) -> None:
    def numbers(table: int, method: str) -> set[str]:
        return {
            row["value"]
            for row in rows(whole, TABLES[table - 1])
            if (row["method"], row["metric"], row["release"]) == (method, "soda_d", "youcook2")
        }

    assert numbers(1, "Ours") == numbers(3, "Ours") <= numbers(2, "PDVC")


def test_the_page_shows_every_table_and_videos_over_time(whole: Path) -> None:
    page = (whole / PAGES[0]).read_text()
    assert page.count("<figure>") == 6 + 3 * len(pss.DATASETS)
    assert "SoftSODA, S3D" in page
    assert (whole / PAGES[2]).read_text().startswith("<?xml")


def test_only_what_depends_on_a_change_runs_again(whole: Path, tmp_path: Path) -> None:
    assert STUDY.run(whole, *TABLES, *PAGES) == []
    ordered = CONFIG["metrics"] | {"order": "start"}
    scored = STUDY.run(whole, TABLES[0], dry=True, metrics=ordered, tables=["table1"])
    assert {job.split()[0] for job in scored} == {"score", TABLES[0]}
    jobs = STUDY.run(whole, TABLES[1], dry=True, features=CONFIG["features"] | {"s3d": ["i3d"]})
    entries = {job.split()[1] for job in jobs if job.startswith(("fit ", "predict "))}
    assert entries == {"pdvc-s3d", "soda-s3d", "softsoda-s3d"}

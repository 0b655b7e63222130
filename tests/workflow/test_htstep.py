"""HT-Step on a small release: predictions, fits, scores, tables, submissions and the page, and what runs again."""

from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.htstep.synthetic import CONFIG, write_banks, write_releases
from tests.benchmarks.tower import BACKBONES
from tests.workflow.runs import Study, by_entry

pytestmark = pytest.mark.slow
NAMES = ("table1", "table2c", "table4", "table6")
"""Between them they have each kind of method; Tables 2, 2b, 3 and 5 have more entries of the same kinds."""
ABSENT = "mt-bce-narrations", "mt-bce-vina"
"""Of the same kind is mt-bce; with narrations aft-narrations is fitted."""
SMALL: dict[str, Any] = CONFIG | {
    "tables": list(NAMES),
    "entries": {name: {"kind": "files", "features": "", "settings": {}} for name in ABSENT},
}
STUDY = Study("htstep", SMALL, {"backbones": BACKBONES})
TABLES = STUDY.results(*(f"{name}.csv" for name in NAMES))
PAGE = "results/htstep/report.html"


def write(folder: Path) -> None:
    """Write the releases and planted features."""
    write_releases()
    write_banks(folder)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder in which the small study's tables and page are made."""
    return STUDY.whole(tmp_path_factory, write, *TABLES, *STUDY.results("table7.csv", "report.html", "all"))


def numbers(folder: Path, table: str) -> dict[tuple[str, str], dict[str, str]]:
    return by_entry(folder, *STUDY.results(f"{table}.csv"))


def test_every_line_has_a_number_or_says_what_it_needs(whole: Path) -> None:
    for name in NAMES:
        for (entry, metric), row in numbers(whole, name).items():
            if not row["value"] and entry:
                assert row["status"] == "needs", (entry, metric)
    found = numbers(whole, "table4")
    assert found["place", "val_seen_full_map"]["status"] == "ours"
    assert found["aft", "test_unseen_full_map"]["note"].startswith("needs labels:htstep/test_unseen")
    assert "results/htstep/submissions/aft/test_unseen.csv" in found["aft", "test_unseen_full_map"]["note"]
    assert ("actionformer", "test_unseen_full_map") not in found
    coin = numbers(whole, "table6")["aft-narrations-coin-crosstask", "crosstask_r1"]
    assert "features:planted/coin" in coin["note"]


def test_what_is_planted_is_found(whole: Path) -> None:
    found = numbers(whole, "table2c")
    assert float(found["mil-nce", "val_seen_r1"]["value"]) > 95 > float(found["place", "val_seen_r1"]["value"])
    assert float(found["tfidf", "val_seen_r1"]["value"]) > 80
    assert float(numbers(whole, "table6")["uniform", "crosstask_map"]["value"]) < 50


def test_submissions_hold_the_withheld_splits(whole: Path) -> None:
    for entry, splits in {"aft": 3, "actionformer": 1}.items():
        folder = whole / "results/htstep/submissions" / entry
        assert len(listed := sorted(folder.glob("*.csv"))) == splits
        assert listed[0].read_text().startswith(",video-id,t-start,t-end,label,score\n0,")


def test_activities_stand_beside_the_paper(whole: Path) -> None:
    lines = (whole / "results/htstep/table7.csv").read_text().splitlines()
    assert "Clean Flounder,actionformer,official,test_seen,,37.95,needs labels:htstep/test_seen" in lines
    assert [line for line in lines if line.startswith("Make Tea,mt-bce,per query,val_seen,")]


def test_the_page_has_steps_over_time(whole: Path) -> None:
    page = (whole / PAGE).read_text()
    assert "Partial and full matches" in page
    assert "Segments of val_seen-0-0 over time: annotated" in page


def test_only_what_depends_on_a_change_runs_again(copied: Path) -> None:
    assert STUDY.run(copied, *TABLES, PAGE) == []
    scored = STUDY.run(copied, *TABLES, dry=True, metrics=CONFIG["metrics"] | {"crosstask_seed": 1})
    assert {job.split()[0] for job in scored} == {"score", *TABLES}
    assert {job.split()[3] for job in scored if job.startswith("score ")} == {"crosstask"}
    changed = STUDY.run(copied, *TABLES, dry=True, actionformer=CONFIG["actionformer"] | {"epochs": 3})
    assert {job.split()[1] for job in changed if job.startswith("fit ")} == {
        "actionformer",
        "aft",
        "aft-narrations",
        "aft-narrations-htstep",
    }
    assert {job.split()[1] for job in changed if job.startswith("predict ") and "crosstask" in job} == {
        "aft-crosstask",
        "aft-narrations-crosstask",
        "aft-narrations-htstep-crosstask",
    }

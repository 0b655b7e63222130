"""The uniform lines of PSS on the released annotation, from its files to the tables."""

from pathlib import Path

import pytest

from stepline.benchmarks.pss.benchmark import Pss
from stepline.benchmarks.pss.words import Words
from stepline.config import validate
from stepline.datasets.pss import RELEASES, load
from stepline.fetch import fetch_release
from stepline.runs.table import table_rows
from stepline.tables import Row
from tests.benchmarks.pss.test_table import compute
from tests.ledger import assert_in_ledger


@pytest.fixture
def made(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> Pss:
    monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))
    for release in ("youcook2", "tasty"):
        fetch_release(RELEASES, release)
    return Pss.of(validate({"pss": {"metrics": {"bootstrap_samples": 100}}}), "pss")


def test_the_splits_are_the_papers(made: Pss) -> None:
    assert [len(load("youcook2", split)) for split in ("train", "val", "test")] == [840, 183, 180]
    assert [len(load("tasty", split)) for split in ("val", "test")] == [400, 400]
    assert sum(len(each.segments) for each in load("youcook2", "test").values()) == 1444
    assert len(made.footage["youcook2"].pipeline.videos.shards) == 1203


def test_the_words_of_both_vocabularies_are_found(made: Pss) -> None:
    for dataset, known in (("youcook2", 0.99), ("tasty", 0.98)):
        words = Words.released(dataset)
        ids = [
            number
            for each in load(dataset, "test").values()
            for sentence in each.sentences
            for number in words.encode(sentence, 30)
        ]
        assert sum(number != words.ids["UNK"] for number in ids) / len(ids) > known


def uniform(made: Pss, target: str) -> list[Row]:
    compute(made, target)
    return [row for row in table_rows(made, target) if row.setting.startswith("baseline") and row.value is not None]


def test_nine_numbers_are_exact_and_the_others_differ_in_the_second_digit(made: Pss) -> None:
    computed = uniform(made, "table1")
    assert_in_ledger(computed)
    found = {(row.method, row.metric): row for row in computed if row.printed}
    assert len(found) == 3 * 5
    for (_, metric), row in found.items():
        near = metric in ("miou_1fps", "mjaccard_1fps")
        assert row.status == ("differs" if near else "exact"), row
        assert not near or abs(row.difference or 1) <= 0.06
    precise = {method: row.value for (method, metric), row in found.items() if metric == "soda_d"}
    assert precise == pytest.approx(
        {"Uniform (Avg #Segments)": 29.467, "Uniform (Avg #Duration)": 28.531, "Uniform (GT)": 30.475}, abs=6e-4
    )


def test_tasty_is_reproduced_on_more_videos_than_the_paper_says(made: Pss) -> None:
    rows = [row for row in uniform(made, "table3") if row.release == "tasty"]
    assert_in_ledger(row for row in rows if row.split == "test")
    assert {row.status for row in rows if row.split == "test"} == {"differs"}
    assert {row.status for row in rows if row.split == "val+test"} == {"ours"}
    assert all("averaged over another set" in row.note for row in rows if row.split == "test")
    printed = {(row.method, row.metric): row.paper for row in rows if row.split == "test"}
    pooled = [(row.value, printed[row.method, row.metric]) for row in rows if row.split == "val+test"]
    assert len(pooled) == 9
    assert max(abs((value or 0) - (paper or 0)) for value, paper in pooled) == pytest.approx(0.07, abs=0.005)
    assert {row.n_videos for row in rows} == {400, 800}

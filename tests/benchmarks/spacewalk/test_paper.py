"""The paper's Table 2, number by number."""

import csv
import os
from importlib.resources import files
from pathlib import Path

import pytest

from stepline.tables import read_paper

PATH = Path(str(files("stepline.benchmarks.spacewalk").joinpath("paper/table2.csv")))
BESIDE = Path(__file__).parents[4] / "shared/data"
DATA = Path(os.environ.get("STEPLINE_REAL_DATA", BESIDE)) / "spacewalk/paper_tables"
TABLES = {"2a": "table2a_step_recognition.csv", "2b": "table2b_intra_video_retrieval.csv"}
SETTINGS = {
    "zero-shot": "zero-shot",
    "last-layer-ft": "last-layer",
    "all-layer-ft": "all-layer",
    "Random": "baseline",
    "TW-FINCH": "baseline",
    "Human": "reference",
    "GPT-3.5": "reference",
}
UNLIMITED = ("Human", "TW-FINCH")


def records() -> list[dict[str, str]]:
    with open(PATH, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.mark.skipif(not DATA.is_dir(), reason="the paper's tables are not here: set STEPLINE_REAL_DATA")
def test_table2_holds_every_spacewalk_number_of_the_paper_as_printed() -> None:
    printed = {}
    for table, name in TABLES.items():
        with open(DATA / name, newline="", encoding="utf-8") as file:
            for record in csv.DictReader(file):
                method = record["method"]
                setting = SETTINGS.get(record["setting"]) or SETTINGS[method]
                modality = "" if record["modality"] == "-" else record["modality"]
                for column, value in record.items():
                    if column.startswith("w") and value:
                        window, _, metric = column[1:].partition("_")
                        length = float(window.rstrip("mins")) * (60 if window.endswith("min") else 1)
                        context = None if method in UNLIMITED else length
                        key = (table, method, modality, setting, context, {"acc": "accuracy"}.get(metric, metric))
                        printed[(*key[:5], key[5] or "accuracy")] = value
    assert {key: number.printed for key, number in read_paper(PATH).items()} == printed


def test_table2_has_each_number_once() -> None:
    assert len(read_paper(PATH)) == len(records()) == 121


def test_decimals_are_those_printed() -> None:
    assert all(int(r["decimals"]) == len(r["paper"].partition(".")[2]) for r in records())


def test_a_tolerance_stands_only_where_it_is_justified_and_has_a_source() -> None:
    allowed = {"zero-shot": "1", "last-layer": "1", "all-layer": "3.1"}
    for record in records():
        expected = "0.005" if record["method"] == "Random" else allowed.get(record["setting"], "")
        assert record["tolerance"] == expected
        assert bool(record["tolerance_source"]) == bool(expected)


def test_no_number_of_table2_is_called_wrong() -> None:
    assert not [record for record in records() if record["evidence"]]

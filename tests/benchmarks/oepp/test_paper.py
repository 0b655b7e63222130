"""The paper's numbers, all cells of its tables."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from stepline.benchmarks.oepp.benchmark import Oepp
from stepline.tables import read_paper
from stepline.tables.paper import Published

FOLDER = Oepp.folder / "paper"
LINES = {"1": 5, "2": 60, "3": 24, "4": 27, "5": 36, "6": 72, "7": 30, "8": 20}
THEIRS = {
    "1": "table1_dataset_comparison",
    "2": "table2_main",
    "3": "table3_longer_horizon_SR",
    "4": "table4_loss_ablation_transformer_T3",
    "5": "table5_feature_ablation_T3",
    "6": "table6_all_horizons",
    "7": "table7_gpt4o",
    "8": "table8_statistics",
}
LOSSES = {"L_ce only": "CE", "L_mse only": "MSE", "L_ce+L_mse": "CE+MSE"}
Key = tuple[str, str, str, str]


def records(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def ours(table: str) -> dict[Key, Published]:
    """Return our copies of a table's numbers by method, modality, setting and metric."""
    found = read_paper(FOLDER / f"table{table}.csv", Oepp.metrics)
    assert {(key[0], key[4], key[6]) for key in found} == {(table, None, "")}
    return {(key[1], key[2], key[3], key[5]): number for key, number in found.items()}


def cells(table: str, record: dict[str, str]) -> Iterator[tuple[Key, str]]:
    """Yield our key of each cell of a line of the paper's table, with its number."""
    named = record.get("model") or record.get("method") or record.get("split") or "Transformer-based"
    method = "Ours" if table == "1" else named.replace("_", " ")
    horizon, images = record.get("T", "3"), record.get("num_images", "")
    modality = record.get("features") or LOSSES.get(next(iter(record.values())), "")
    if images:
        modality = "1 image" if images == "1" else f"{images} images"
    setting = "" if table in ("1", "8") else "whole video" if horizon.startswith("none") else f"T={horizon}"
    for column, value in record.items():
        if table == "3" and column.endswith("_SR"):
            yield (method, "", f"T={column[1]}", f"{record['action_space'].lower()}_sr"), value
        elif column.lower() in Oepp.metrics:
            yield (method, modality, setting, column.lower()), value


def test_every_table_has_its_file_and_each_number_once() -> None:
    assert {path.stem for path in FOLDER.glob("*.csv")} == {f"table{table}" for table in (*LINES, "9", "10")}
    assert {table: len(ours(table)) for table in LINES} == LINES
    assert {table: len(records(FOLDER / f"table{table}.csv")) for table in LINES} == LINES


@pytest.mark.parametrize("table", LINES)
def test_the_numbers_are_the_papers(table: str, real_data: Path) -> None:
    theirs = records(real_data / "oepp/paper_tables" / f"{THEIRS[table]}.csv")
    own = [record for record in theirs if record.get("dataset", "OpenEvent(ours)") == "OpenEvent(ours)"]
    printed = dict(cell for record in own for cell in cells(table, record))
    assert {key: number.printed for key, number in ours(table).items()} == printed


def test_the_actions_of_table_8_are_those_of_the_pool_and_a_note_counts_those_that_occur(real_data: Path) -> None:
    assert Oepp.metrics["actions"].title == "Actions in the pool"
    for part, file, pool in (
        ("Train", "train_train_base_dataset_1", "base"),
        ("Val", "train_val_base_dataset_1", "base"),
        ("Test base", "test_base_dataset_1", "base"),
        ("Test novel", "novel_dataset_1", "novel"),
    ):
        videos = json.loads((real_data / f"oepp/{file}.json").read_text())
        listed = json.loads((real_data / f"oepp/{pool}_action_pool_1.json").read_text())
        occur = {step["action"] for video in videos for step in video["anno"]}
        assert occur <= {*listed}
        said, many = ours("8")[part, "", "", "actions"], "all" if occur == {*listed} else len(occur)
        assert said.printed == str(len(listed))
        assert said.note == f"the size of the {pool} pool; {many} of its actions occur in this part of split1"


def test_a_number_that_stands_in_several_tables_is_the_same_in_all() -> None:
    seen: dict[Key, set[str]] = {}
    for table in ("2", "3", "4", "5", "6"):
        for (method, modality, *rest), number in ours(table).items():
            plain = "" if modality in ("CE+MSE", "VideoCLIP") else modality
            seen.setdefault((method, plain, rest[0], rest[1]), set()).add(number.printed)
    assert [key for key, values in seen.items() if len(values) > 1] == []


def test_a_tolerance_has_its_source_and_stands_at_what_the_paper_or_chance_gives() -> None:
    for table in LINES:
        for (method, _, setting, metric), number in ours(table).items():
            assert (number.tolerance is None) == (not number.tolerance_source)
            bars = {"MLP-based": 2.0, "Transformer-based": 1.0}
            if method != "Random":
                stated = (setting, metric[-3:]) == ("T=3", "_sr") and table != "7"
                assert number.tolerance == (bars.get(method) if stated else None), (table, method, setting, metric)
            assert number.decimals == (0 if Oepp.metrics[metric].unit == "count" else 2)
            assert not number.truncated


def test_random_novel_plans_of_the_paper_are_of_122_actions() -> None:
    random = {key[2:]: number for key, number in ours("2").items() if key[0] == "Random"}
    wrong = {key for key, number in random.items() if number.evidence}
    assert wrong == {(f"T={horizon}", f"novel_{metric}") for horizon in (3, 4) for metric in ("acc", "miou")}
    for horizon in (3, 4):
        setting = f"T={horizon}"
        assert abs((random[setting, "novel_acc"].value or 0) - 100 / 55) > 0.9
        for metric, expected in (("base_acc", 100 / 122), ("base_miou", {3: 1.37, 4: 1.63}[horizon])):
            number = random[setting, metric]
            assert abs((number.value or 0) - expected) < (number.tolerance or 0)
        assert {random[setting, f"{part}_sr"].bound for part in ("base", "novel")} == {0.01}


def test_clusters_and_refined_actions_are_the_papers(real_data: Path) -> None:
    theirs = real_data / "oepp/paper_tables"
    assert records(FOLDER / "table9.csv") == records(theirs / "table9_clusters.csv")
    refined = [list(record.values()) for record in records(FOLDER / "table10.csv")]
    assert refined == [
        [" ".join(value.split()) for value in record.values()]
        for record in records(theirs / "table10_action_refinement.csv")
    ]
    assert list(records(FOLDER / "table10.csv")[0]) == ["event", "action_label", "new_action_label"]
    assert (len(records(FOLDER / "table9.csv")), len(refined)) == (43, 28)

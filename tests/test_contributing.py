"""CONTRIBUTING's benchmark is one that runs."""

import csv
import json
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT, snakemake

FILES = dict(re.findall(r"<!-- test: (\S+) -->\n```\w+\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL))
MOMENTS = {
    "test": [
        {"video": "a", "duration_s": 100, "start_s": 20, "end_s": 80},
        {"video": "b", "duration_s": 50, "start_s": 5, "end_s": 20},
    ]
}


def test_the_toy_is_short() -> None:
    assert sum(content.count("\n") for content in FILES.values()) < 120


@pytest.mark.slow
def test_the_toy_runs_as_it_is_printed(tmp_path: Path) -> None:
    for name, content in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "mirror/toy").mkdir(parents=True)
    (tmp_path / "mirror/toy/moments.json").write_text(json.dumps(MOMENTS))
    targets = "results/toy/table1.csv", "results/toy/table1.svg", "results/toy/report.html"
    options = "--cores", "1", "--configfile", "toy.yaml"
    done = snakemake(*targets, *options, folder=tmp_path, STEPLINE_MIRROR="mirror")
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "results/toy/table1.csv", newline="", encoding="utf-8") as file:
        rows = {(row["entry"], row["metric"]): row for row in csv.DictReader(file)}
    assert {key: (row["value"], row["status"]) for key, row in rows.items()} == {
        ("middle", "iou"): ("59.5238", "differs"),
        ("middle", "recall"): ("50.0000", "exact"),
        ("whole", "iou"): ("45.0000", "ours"),
        ("whole", "recall"): ("50.0000", "ours"),
    }
    assert rows["middle", "iou"]["inputs"] == "duration"
    again = snakemake(*targets, *options, folder=tmp_path, STEPLINE_MIRROR="mirror")
    assert "Nothing to be done" in again.stderr

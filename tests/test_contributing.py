"""CONTRIBUTING's benchmark is one that runs."""

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

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
        (tmp_path / name).write_text(content.replace("STEPLINE/", f"{ROOT}/"))
    (tmp_path / "mirror/toy").mkdir(parents=True)
    (tmp_path / "mirror/toy/moments.json").write_text(json.dumps(MOMENTS))

    def run() -> subprocess.CompletedProcess[str]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("STEPLINE_")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
        return subprocess.run(
            ["bash", "-e", "run.sh"],
            cwd=tmp_path,
            env=kept | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    done = run()
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
    assert "iou on test: 59.5238" in done.stdout
    assert "Nothing to be done" in run().stderr

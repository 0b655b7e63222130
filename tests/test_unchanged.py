"""The record of jobs and files that a change of structure is compared with."""

import os
import subprocess
import sys
from pathlib import Path

from tests.unchanged import ROOT, prepare


def test_the_jobs_of_a_data_set_with_a_network_are_recorded(tmp_path: Path) -> None:
    environment = prepare("own", tmp_path / "own", tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tests.unchanged", "--jobs", "own"],
        cwd=tmp_path / "own",
        env=os.environ | environment | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(name in done.stdout for name in ("features/one/", "features/histogram/", "results/mine/report.html"))

"""Runs of the workflow on a small study, and what they did."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import ROOT, snakemake

TABLE = "results/spacewalk/table2.csv"
LONG = (
    *("2a-order-alone", "2a-tfidf-hmm", "2a-tfidf-stems-hmm"),
    *("2a-minilm-sentences", "2a-senttransformer-sentences"),
)
ELSEWHERE = {name: {"target": "tableA9"} for name in LONG}
"""What keeps out of Table 2 the decoder, whose settings take minutes to choose, and encoders of every sentence."""
SMALL: dict[str, Any] = {
    "tables": ["table2"],
    "releases": ["v2"],
    "text_encoders": ["tfidf"],
    "contexts_s": {"step_recognition": [60]},
    "subset": {"videos": ["02012021", "03152022", "11152019"]},
    "last_layer": {"seeds": [0], "epochs": 2},
    "entries": ELSEWHERE,
}
"""Of each split one recording."""


def spacewalk(**changes: Any) -> tuple[str, str]:
    """Return the option that configures the small study with ``changes``."""
    entries = ELSEWHERE | changes.get("entries", {})
    return "--config", f"spacewalk={json.dumps(SMALL | changes | {'entries': entries})}"


def run(*arguments: str, folder: Path, mirror: Path, traced: bool = False, **environment: str) -> list[str]:
    """Run the workflow and return the messages of its jobs, sorted; none where there was nothing to do."""
    environment["STEPLINE_MIRROR"] = str(mirror)
    done = snakemake("--cores", "2", *arguments, folder=folder, traced=traced, **environment)
    assert done.returncode == 0, done.stderr
    jobs = messages(done)
    assert jobs or "Nothing to be done" in done.stderr, done.stderr
    return jobs


def run_study(
    folder: Path, name: str, study: dict[str, Any], *targets: str, dry: bool = False, traced: bool = False, **other: Any
) -> list[str]:
    """Run the workflow on one study, configured by ``<name>.json``, and return the messages of its jobs, sorted.

    other: keys of the configuration besides the study's.
    """
    (folder / f"{name}.json").write_text(json.dumps({name: study, **other}))
    options = ["--cores", "1", "--configfile", f"{name}.json", *(["--dry-run"] if dry else [])]
    done = snakemake(*options, "--", *targets, folder=folder, traced=traced)
    assert done.returncode == 0, done.stderr
    return messages(done)


def killed(*arguments: str, folder: Path, when: Callable[[], object], **environment: str) -> None:
    """Start a run, and kill it and its jobs as soon as ``when`` says so."""
    command = [Path(sys.executable).parent / "snakemake", "--snakefile", ROOT / "Snakefile", *arguments]
    with subprocess.Popen(
        command, cwd=folder, env=os.environ | environment, stderr=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            while not when() and process.poll() is None:
                time.sleep(0.005)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL


def messages(done: subprocess.CompletedProcess[str]) -> list[str]:
    """Return the messages of the jobs of a run, sorted."""
    return sorted(re.findall(r"^Job \d+: (.+)$", done.stderr + done.stdout, re.MULTILINE))


def rows(folder: Path, table: str = TABLE) -> list[dict[str, str]]:
    """Return the lines of a table."""
    with open(folder / table, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def linked(mirror: Path, folder: Path) -> Path:
    """Return a mirror of links to the Spacewalk-18 files of another, to which a test may add."""
    shutil.copytree(mirror / "spacewalk", folder / "spacewalk", copy_function=os.symlink)
    return folder

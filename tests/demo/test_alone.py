"""Each fit, prediction and score of the demo, alone in a folder with what it declares and what that was made from."""

import json
import os
import shlex
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("av")
pytest.importorskip("pocketsphinx")

from tests import forked
from tests.reads import WRITERS, records, waited, writers_of

pytestmark = pytest.mark.slow
LIKE_OTHERS = ("2a-tfidf-stems-hmm", "2a-tfidf-stems-zero-shot", "2a-tfidf-train-zero-shot", "2b-tfidf-train-zero-shot")
"""Entries of the kinds of others, with other terms alone; what they read is seen in the traced run."""


@pytest.mark.parametrize(("rule", "suffix"), [("fit", ".safetensors"), ("predict", ".parquet"), ("score", ".json")])
def test_a_job_makes_the_same_of_what_it_declares_alone(rule: str, suffix: str, demo_run: Path, tmp_path: Path) -> None:
    config = min(demo_run.glob(".stepline/config-*.json"), key=lambda path: path.stat().st_mtime_ns)
    kept = {key: value for key, value in os.environ.items() if not key.startswith("STEPLINE_")}
    environment = kept | {"STEPLINE_CONFIG": str(config)}
    writers = json.loads((demo_run / WRITERS).read_text())
    ancestors = waited(demo_run, writers)
    made = [path for path in demo_run.rglob("*") if path.is_file() and ".snakemake" not in path.parts]
    by = {path: {*writers_of(writers, str(path.relative_to(demo_run)))} for path in made}
    commands = {record["log"][0]: record["shellcmd"] for record in records(demo_run) if record["rule"] == rule}
    assert commands
    for log, command in commands.items():
        if Path(log).name.split(".")[2] in LIKE_OTHERS:
            continue
        folder = tmp_path / log
        for path in (path for path in made if by[path] & (ancestors[log] - {log})):
            link = folder / path.relative_to(demo_run)
            link.parent.mkdir(parents=True, exist_ok=True)
            link.hardlink_to(path)
        python, option, module, *arguments = shlex.split(command)
        assert (python, option) == ("python", "-m")
        done = forked.run(module, arguments, folder, environment)
        assert done.returncode == 0, f"{log}: {done.stderr}"
        outputs = [path.relative_to(demo_run) for path in made if by[path] == {log} and path.suffix == suffix]
        assert outputs
        assert [path for path in outputs if (folder / path).read_bytes() != (demo_run / path).read_bytes()] == [], log

"""Each measurement once at a small size. ``make perf`` runs the long tests: minutes in all."""

import os
import re
import resource
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.perf.conftest import PERF

README = (PERF / "README.md").read_text(encoding="utf-8")
COMMANDS = {
    match[1]: shlex.split(match[2], comments=True)
    for match in re.finditer(r"^\.venv/bin/python perf/(\w+)\.py(.*)$", README, re.MULTILINE)
}
WRONG = re.compile(r"(?<![\w.])(?:-\d[\d.]*|nan|inf)\b")


def test_every_script_is_listed() -> None:
    scripts = {path.stem for path in PERF.glob("*.py") if '\nif __name__ == "__main__"' in path.read_text()}
    parts = {path.stem for path in PERF.glob("gpu*.py")}
    assert scripts - parts - {"peer_pixeltable"} == {*COMMANDS}
    assert "perf/gpu.sh" in README


def cpu_s() -> float:
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])


@pytest.mark.long
@pytest.mark.parametrize("name", COMMANDS)
def test_it_runs_at_a_small_size(name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    environment = os.environ | {"PERF_SMALL": "1", "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    words = []
    for word in COMMANDS[name]:
        if word == "CLIPS":
            subprocess.run([sys.executable, PERF / "gpu_clips.py", tmp_path], env=environment, check=True)
            word = str(tmp_path)
        elif word == "PARITY":
            word = str(request.getfixturevalue("parity"))
        elif word == "DATA":
            word = str(request.getfixturevalue("real_data") / "htstep")
        elif word == "s3://BUCKET/PREFIX":
            word = request.getfixturevalue("remote")
            environment |= request.getfixturevalue("storage").environment()
        elif word == "FOLDER":
            word = str(tmp_path / "folder")
        words.append(word)
    before_s = cpu_s()
    done = subprocess.run(
        [sys.executable, PERF / f"{name}.py", *words], env=environment, capture_output=True, text=True, check=False
    )
    whole_s = cpu_s() - before_s
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert not WRONG.search(done.stdout)
    tables = re.findall(r"^ {60} +CPU s +ratio\n((?:.{60} *[\d.]+ +[\d.]+\n)+)", done.stdout, re.MULTILINE)
    assert sum(float(line[60:].split()[0]) for table in tables for line in table.splitlines()) <= whole_s

"""What is wrong with a study is said before any job runs."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, snakemake, unavailable

pytestmark = pytest.mark.slow
REFUSED = {
    """--config 'spacewalk={subset: {videos: ["10062091"]}}'""": "config: subset.videos: '10062091' is not listed; ",
    "--config 'spacewalk={entries: {2a-random: {kind: magic}}}'": "config: spacewalk.entries.2a-random.kind: 'magic' ",
    "--config strict=true": "strict: spacewalk needs ",
    "results/demo/table2.csv": "config: study 'demo' is not configured",
    "--configfile twice.yaml": "FOLDER/twice.yaml: not YAML: line 3: the key 'tables' occurs twice; keep one",
    "--configfile nope.yaml": "nope.yaml: no such file; did you mean mine.yaml?",
    "--configfile folder.yaml": "folder.yaml: Is a directory: name a file that this account can read with ",
    "--configfile wrong.yaml": "wrong.yaml: not YAML: line 2, column 1: ",
    "--configfile results/mine/a.csv": "--configfile takes results/mine/a.csv for a configuration: write targets ",
    "results/spacewalk/scores/v2/2a-randm/all.json": "spacewalk has no entry '2a-randm' on 'v2' at 'all': choose from ",
    "results/spacewalk/nope.csv": "no job writes results/spacewalk/nope.csv: did you mean results/spacewalk/table2.csv",
    "features/clip/x/manifests/spacewalk.000.json": "spacewalk has no backbone 'clip': choose from none",
    "spacewalk": "spacewalk is a name, not a file: name files, such as results/spacewalk/table2.csv ",
}
"""Words of a command, and how they are refused."""


def refused(folder: Path, *words: str, **environment: str) -> str:
    """Return the one line with which the workflow refuses, besides those on files and their system."""
    done = snakemake("--cores", "1", *words, folder=folder, lines=True, **environment)
    assert done.returncode != 0
    known = "Using ", "Assuming ", "Config file "
    (line,) = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith(known)]
    return line.removeprefix("error: ")


def test_what_cannot_be_is_one_line_and_nothing_is_computed(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    twice = "demo:\n  tables: [table2]\n  tables: [table3]\n"
    for name, content in {"wrong": "a: [\n", "mine": "pss: {}\n", "twice": twice}.items():
        (tmp_path / f"{name}.yaml").write_text(content)
    for words, line in REFUSED.items():
        assert refused(tmp_path, *shlex.split(words)).startswith(line.replace("FOLDER", str(tmp_path))), words
    assert refused(tmp_path, STEPLINE_MIRROR="no/such/folder") == (
        "STEPLINE_MIRROR=no/such/folder is not a folder: correct the path, or unset it to download"
    )
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / "datasets").exists()


def test_a_damaged_record_of_an_earlier_run_is_one_line(tmp_path: Path) -> None:
    damaged = "datasets/spacewalk/availability/000.json"
    (tmp_path / damaged).parent.mkdir(parents=True)
    (tmp_path / damaged).write_text("[]")
    line = refused(tmp_path, "results/spacewalk/table2.csv")
    assert line.startswith(damaged)
    assert "remove it" in line


def test_a_workspace_remembers_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips/a.mp4").write_bytes(b"none")
    (tmp_path / "mine.yaml").write_text("datasets: {mine: {videos: clips, stages: [shots]}}")
    done = snakemake("--cores", "1", "--configfile", "mine.yaml", "--", "results/mine/videos.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    looked = snakemake("-n", "--config", "spacewalk={tables: [table2], releases: [v2]}", folder=tmp_path)
    (line,) = [line for line in looked.stderr.splitlines() if line.startswith("warning: no --configfile")]
    assert line.endswith("; the last run here had --configfile mine.yaml")
    verb = [sys.executable, "-m", "stepline", "summary", "mine"]
    told = subprocess.run(verb, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert told.stderr == "configuration: mine.yaml, as in the last run here\n"


def test_a_folder_that_may_not_be_written_is_one_line(tmp_path: Path) -> None:
    if not (drop := shutil.which("setpriv")):
        unavailable("setpriv is not installed")
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips/a.mp4").touch()
    (tmp_path / "mine.yaml").write_text("datasets: {mine: {videos: clips}}")
    tmp_path.chmod(0o555)
    root = [drop, "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    snakemake = Path(sys.executable).parent / "snakemake"
    words = [*root, str(snakemake), "--snakefile", str(ROOT / "Snakefile"), "--cores", "1", "--configfile", "mine.yaml"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    tmp_path.chmod(0o755)
    assert done.returncode == 2, shlex.join(words)
    (line,) = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert line.startswith(f"error: {tmp_path}/")
    assert line.endswith("run in a folder where it can write; `stepline plan` only reads")
    assert "Traceback" not in done.stdout + done.stderr

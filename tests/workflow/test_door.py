"""What is wrong with a study is said before any job runs."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, snakemake, unavailable

WRONG = {
    'spacewalk={subset: {videos: ["10062091"]}}': "config: subset.videos: '10062091' is not listed; choose from ",
    "spacewalk={entries: {2a-random: {kind: magic}}}": "config: spacewalk.entries.2a-random.kind: 'magic' is ",
    "strict=true": "strict: spacewalk needs ",
}


@pytest.mark.slow
@pytest.mark.parametrize("setting", WRONG)
def test_a_study_that_cannot_be_is_one_line_and_nothing_is_computed(setting: str, tmp_path: Path) -> None:
    done = snakemake("--cores", "1", "results/spacewalk/table2.csv", "--config", setting, folder=tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert line.startswith(f"error: {WRONG[setting]}")
    assert "Traceback" not in done.stdout + done.stderr
    assert not (tmp_path / "results").exists()
    assert not (tmp_path / "datasets").exists()


@pytest.mark.slow
def test_a_damaged_record_of_an_earlier_run_is_one_line(tmp_path: Path) -> None:
    damaged = "availability/000.json"
    path = tmp_path / "datasets/spacewalk" / damaged
    path.parent.mkdir(parents=True)
    path.write_text("[]")
    done = snakemake("--cores", "1", "--dry-run", "results/spacewalk/table2.csv", folder=tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert line.startswith(f"error: datasets/spacewalk/{damaged}")
    assert "remove it" in line
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.slow
def test_a_study_that_is_not_configured_is_one_line(tmp_path: Path) -> None:
    done = snakemake("--cores", "1", "--dry-run", "results/demo/table2.csv", folder=tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert line.startswith("error: config: study 'demo' is not configured")


@pytest.mark.slow
def test_a_key_that_stands_twice_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("demo:\n  tables: [table2]\n  tables: [table3]\n")
    done = snakemake("--cores", "1", "--configfile", "mine.yaml", "--dry-run", folder=tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert line == f"error: {tmp_path}/mine.yaml: not YAML: line 3: the key 'tables' occurs twice; keep one"


@pytest.mark.slow
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


@pytest.mark.slow
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


CONFIGURATIONS = {
    "nope.yaml": "nope.yaml: no such file; did you mean {near}?",
    "folder.yaml": "folder.yaml: Is a directory: name a file that this account can read with --configfile",
    "empty.yaml": "empty.yaml: it is empty; write what to compute, such as `datasets: ",
    "wrong.yaml": "wrong.yaml: not YAML: line 2, column 1: ",
    "latin.yaml": "latin.yaml: not YAML: 'utf-8' codec can't decode byte 0xff",
    "results/mine/videos.csv": "--configfile takes results/mine/videos.csv for a configuration: write targets before ",
}
"""What follows ``--configfile``, and how it is refused."""
TARGETS = {
    "results/pss/scores/v0/2a-mpnet/180s.json": "pss has no entry '2a-mpnet' on 'v0' at '180s': choose from ",
    "results/spacewalk/scores/v2/2a-randm/all.json": "spacewalk has no entry '2a-randm' on 'v2' at 'all': choose from "
    "2a-random on v2 at all, ",
    "results/spacewalk/nope.csv": "no job writes results/spacewalk/nope.csv: did you mean results/spacewalk/table2.csv",
    "results/spacewalks/table2.csv": "no job writes results/spacewalks/table2.csv: did you mean results/spacewalk/",
    "results/spacewalk/videos/-bcDEF1234.html": "no job writes results/spacewalk/videos/-bcDEF1234.html: "
    "`stepline show spacewalk -bcDEF1234` writes the timeline of a video",
    "features/clip/x/manifests/spacewalk.000.json": "spacewalk has no backbone 'clip': choose from none",
    "spacewalk": "spacewalk is a name, not a file: name files, such as results/spacewalk/table2.csv ",
    "nope": "no job writes nope: name a file such as results/spacewalk/table2.csv",
}
"""Targets that are none, and how they are refused."""


def refused(folder: Path, *words: str) -> str:
    """Return the one line with which the workflow refuses, besides those on its profile and file system."""
    done = snakemake("--cores", "1", "--dry-run", *words, folder=folder, lines=True)
    assert done.returncode != 0
    (line,) = [
        line for line in (done.stdout + done.stderr).splitlines() if not line.startswith(("Using ", "Assuming "))
    ]
    return line.removeprefix("error: ")


@pytest.mark.slow
def test_a_configuration_that_cannot_be_read_is_one_line_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "folder.yaml").mkdir()
    for name, content in (("empty", b""), ("wrong", b"a: [\n"), ("latin", b"\xff"), ("mine", b"pss: {}\n")):
        (tmp_path / f"{name}.yaml").write_bytes(content)
    for file, line in CONFIGURATIONS.items():
        assert refused(tmp_path, "--configfile", file).startswith(line.format(near="mine.yaml")), file


@pytest.mark.slow
def test_a_target_that_no_job_writes_is_one_line_with_the_closest(tmp_path: Path) -> None:
    for target, line in TARGETS.items():
        assert refused(tmp_path, "--", target).startswith(line), target

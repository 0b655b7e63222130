import os
import sys

import pytest

from stepline import slurm
from tests.conftest import snakemake

UP, DOWN = "echo 'Slurmctld(primary) at one is UP'", "echo 'Slurmctld(primary) at one is DOWN'; exit 1"
SAYS = "Slurm's controller does not respond (scontrol ping): each start of snakemake waits 10 s"


def answering(folder, monkeypatch, script):
    """Put a controller's answer where `scontrol` is looked for."""
    (folder / "bin").mkdir()
    (folder / "bin/scontrol").write_text(f"#!/bin/sh\n{script}\n")
    (folder / "bin/scontrol").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")


@pytest.mark.parametrize(
    ("script", "warned"),
    [
        (UP, False),
        (DOWN, True),
        (f"({DOWN}); echo 'Slurmctld(backup) at two is UP'", False),
        ("echo 'fatal: Could not establish a configuration source' >&2; exit 1", False),
        ("exec sleep 60", True),
    ],
    ids=["up", "down", "backup", "not configured", "silent"],
)
def test_a_controller_that_does_not_answer_is_named(tmp_path, monkeypatch, script, warned):
    answering(tmp_path, monkeypatch, script)
    monkeypatch.setitem(sys.modules, slurm.PLUGIN, slurm)
    monkeypatch.setattr(slurm, "ANSWERS_IN_S", 0.5)
    assert [line[: len(SAYS)] for line in slurm.warnings()] == [SAYS] * warned


def test_it_is_not_asked_where_the_plugin_is_absent(tmp_path, monkeypatch):
    answering(tmp_path, monkeypatch, f"touch {tmp_path}/asked; {DOWN}")
    monkeypatch.delitem(sys.modules, slurm.PLUGIN, raising=False)
    assert list(slurm.warnings()) == []
    assert not (tmp_path / "asked").exists()


@pytest.mark.slow
def test_a_run_says_so(tmp_path, monkeypatch):
    pytest.importorskip(slurm.PLUGIN)
    answering(tmp_path, monkeypatch, DOWN)
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos/one.mp4").touch()
    (tmp_path / "mine.yaml").write_text("datasets: {mine: {videos: videos}}\n")
    done = snakemake("--dry-run", "--cores", "1", "--configfile", "mine.yaml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count(f"warning: {SAYS}") == 1

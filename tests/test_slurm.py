import os
import sys
from dataclasses import astuple
from math import inf

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


SHOWN = """case "$2" in
partition)
    echo 'PartitionName=main Default=YES MaxTime=UNLIMITED MaxMemPerNode=UNLIMITED'
    echo 'PartitionName=short Default=NO MaxTime=01:00:00 MaxMemPerNode=16000'
    echo 'PartitionName=long Default=NO MaxTime=2-00:00:00 MaxMemPerNode=UNLIMITED';;
node)
    echo 'NodeName=n1 RealMemory=64000 Gres=(null) Partitions=main,short'
    echo 'NodeName=n2 RealMemory=128000 Gres=gpu:a100:4(S:0-1),shard:8 Partitions=main';;
esac"""
REFUSED = "is requested, and partition"


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """A controller with three partitions, one of them without nodes."""
    slurm.partitions.cache_clear()
    answering(tmp_path, monkeypatch, SHOWN)
    yield
    slurm.partitions.cache_clear()


def test_partitions_have_the_limits_of_slurm_and_the_largest_of_their_nodes(cluster):
    assert {name: astuple(each) for name, each in slurm.partitions().items()} == {
        "main": (128000, inf, 4, True),
        "short": (16000, 60, 0, False),
        "long": (inf, 2880, inf, False),
    }


@pytest.mark.parametrize(
    ("requests", "said"),
    [
        ({"mem_mb": 128000, "runtime": 99999, "gpu": 4}, []),
        ({"mem_mb": 128001}, [f"mem_mb=128001 {REFUSED} main allows 128000"]),
        ({"slurm_partition": "short", "runtime": 61, "gpu": 1},
         [f"runtime=61 {REFUSED} short allows 60", f"gpu=1 {REFUSED} short allows 0"]),
        ({"slurm_partition": "short,long", "runtime": 61}, []),
        ({"slurm_partition": "elsewhere", "runtime": 10**6},
         ["partition elsewhere does not exist: Slurm has main, short, long"]),
        ({"runtime": "2d", "mem_mb": None}, []),
    ],
)  # fmt: skip
def test_a_request_that_no_partition_allows_is_named(cluster, requests, said):
    assert [line.partition(", so")[0] for line in slurm.beyond(requests)] == said


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

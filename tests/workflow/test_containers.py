"""The image, as far as that shows without building it, and conda environments inside of a container."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.conftest import ROOT, snakemake
from tests.workflow.conda_standin import install

CONDA = r"""#!/bin/sh
# What Snakemake asks of the machine's own conda: where it is, and to remove downloads.
case "$1" in
  info) echo '{"conda_prefix": "/nowhere", "platform": "linux-64"}' ;;
  clean) ;;
  *) exit 1 ;;
esac
"""
TARGET = "results/pss/worked_examples.html"
APPTAINER = r"""#!/bin/sh
# Runs the command that a container would, and keeps it.
case "$1" in
  --version) echo "apptainer version 1.4.0" ;;
  pull) echo "$@" >> "$RECORD"; : > "$3" ;;
  *)
    for word in "$@"; do printf '%s\0' "$word"; done >> "$RECORD"
    echo >> "$RECORD"
    while [ "$1" != bash ] && [ "$1" != sh ]; do shift; done
    PATH="$IMAGE:$PATH" exec "$@" ;;
esac
"""


def instructions() -> list[tuple[str, list[str]]]:
    """Return the instructions of the Containerfile, each with its words."""
    text = re.sub(r"^#.*\n", "", (ROOT / "Containerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    lines = [line.split(maxsplit=1) for line in text.splitlines() if line.strip()]
    return [(name, shlex.split(rest)) for name, rest in lines]


def words(name: str) -> list[list[str]]:
    return [rest for each, rest in instructions() if each == name]


class TestImage:
    def test_it_stands_on_an_exact_version_of_python(self) -> None:
        [[base]] = words("FROM")
        version = re.fullmatch(r"docker\.io/library/python:(3\.\d+)\.\d+-slim-[a-z]+", base)
        assert version
        assert f"Programming Language :: Python :: {version[1]}" in (ROOT / "pyproject.toml").read_text()

    def test_it_has_the_extras_of_all_of_clusters_and_of_youtube_in_the_versions_of_constraints(self) -> None:
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
        [everything] = extras["all"]
        [packages] = [run for run in words("RUN") if "--extra" in run]
        wanted = {after for word, after in pairwise(packages) if word == "--extra"}
        assert wanted == Requirement(everything).extras | {"cluster", "youtube"}
        assert packages[packages.index("--constraints") + 1] == "constraints.txt"

    def test_its_user_is_a_number_that_is_not_roots_and_it_runs_any_command(self) -> None:
        assert words("USER") == [["1000"]]
        assert ["HOME=/tmp"] in words("ENV")  # any other account can write there
        assert not words("ENTRYPOINT")
        assert not words("CMD")

    @pytest.mark.slow
    def test_what_it_copies_is_enough_for_the_rules(self, tmp_path: Path) -> None:
        image = tmp_path / "stepline"
        image.mkdir()
        kept = [line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")]
        copied = [source for *sources, _ in words("COPY") for source in sources]
        assert sorted(copied) == sorted(kept)
        for source in copied:
            copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
            copy(ROOT / source, image / source)
        work = tmp_path / "work"
        work.mkdir()
        command = [sys.executable, "-m", "snakemake", "--snakefile", image / "Snakefile", "--cores", "1", "-n", "-p"]
        modules = str(image / "workflow/profiles/kubernetes")
        environment = {name: value for name, value in os.environ.items() if not name.startswith("STEPLINE_")}
        done = subprocess.run(
            [*command, TARGET], cwd=work, env=environment | {"PYTHONPATH": modules}, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert TARGET in done.stdout + done.stderr


@pytest.mark.slow
def test_environments_are_made_and_run_inside_of_the_container(tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, script in (("apptainer", APPTAINER), ("conda", CONDA)):
        (tools / name).write_text(script)
        (tools / name).chmod(0o755)
    record, image = tmp_path / "record", install(tmp_path / "image")
    environment = {"PATH": f"{tools}:/usr/bin:/bin", "RECORD": str(record), "IMAGE": str(image)}
    done = snakemake("--cores", "1", TARGET, "--sdm", "conda", "apptainer", folder=tmp_path, **environment)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / TARGET).exists()
    [container] = re.findall(r'^container: "(.+)"', (ROOT / "Snakefile").read_text(), re.MULTILINE)
    assert re.fullmatch(r"docker://condaforge/miniforge3:\d+\.\d+\.\d+-\d+", container)
    pulled, *commands = record.read_text().splitlines()
    assert pulled.startswith("pull ")
    assert pulled.endswith(container)
    started = [command.split("\0")[:-1] for command in commands]
    assert all(["--home", str(tmp_path)] == each[each.index("exec") + 1 :][:2] for each in started)
    assert any("conda env create" in each[-1] for each in started)
    assert "python -m stepline" in started[-1][-1]
    assert "bin/activate" in started[-1][-1]


def test_a_container_without_conda_is_refused(tmp_path: Path) -> None:
    done = snakemake("--cores", "1", "--dry-run", TARGET, "--sdm", "apptainer", folder=tmp_path)
    assert done.returncode == 2
    assert "error: --sdm apptainer: the container has conda but none of Stepline's packages" in done.stderr


@pytest.mark.slow
def test_an_image_of_the_environments_can_be_written(demo_mirror: Path, tmp_path: Path) -> None:
    path = f"{install(tmp_path / 'conda')}:{os.environ['PATH']}"
    options = "--use-conda", "--containerize", "--configfile", str(ROOT / "config.demo.yaml")
    target = "results/demo/table2.csv"
    done = snakemake("--cores", "1", target, *options, folder=tmp_path, PATH=path, STEPLINE_MIRROR=str(demo_mirror))
    assert done.returncode == 0, done.stderr
    copied = re.findall(r"^COPY (\S+/envs/(\w+)\.yaml) \S+", done.stdout, re.MULTILINE)
    assert {name for _, name in copied} == {"core", "media", "networks"}
    assert all((tmp_path / source).resolve() == ROOT / f"envs/{name}.yaml" for source, name in copied)
    assert done.stdout.count("conda env create --prefix") == len(copied)

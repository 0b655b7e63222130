"""What the Makefile decides before it installs: the Python, and the links that uv is given."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def make(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "UV_", "MAKE"))}
    command = ["make", "--no-print-directory", *words]
    return subprocess.run(command, cwd=ROOT, env=kept | variables, capture_output=True, text=True, check=False)


@pytest.fixture
def venv(tmp_path):
    """A venv whose uv writes down what it was given."""
    (tmp_path / "bin").mkdir()
    scripts = {
        "python": f'exec {sys.executable} "$@"',
        "uv": f'echo "${{UV_FIND_LINKS-unset}}" "$@" > {tmp_path}/given',
    }
    for name, line in scripts.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def links(venv: Path, **variables: str) -> str:
    done = make("install", f"VENV={venv}", **variables)
    assert done.returncode == 0, done.stderr
    return (venv / "given").read_text().split()[0]


@pytest.mark.parametrize(
    ("file", "variables", "expected"),
    [
        ("", {}, "unset"),
        ("find-links = one two", {}, "one,two"),
        ("find-links =\n    one\n    two", {}, "one,two"),
        ("find-links = one", {"PIP_FIND_LINKS": "three four"}, "three,four"),
        ("find-links = one", {"UV_FIND_LINKS": "five"}, "five"),
    ],
)
def test_find_links_of_pip_are_handed_on_to_uv(venv, file, variables, expected):
    if "find-links" in "".join(path.read_text() for path in Path("/etc").glob("pip.conf")):
        pytest.skip("the find-links of this machine's own pip.conf come in between")
    (venv / "pip.conf").write_text(f"[install]\n{file}\n")
    quiet = {"HOME": str(venv), "XDG_CONFIG_DIRS": str(venv), "XDG_CONFIG_HOME": str(venv)}
    assert links(venv, PIP_CONFIG_FILE=str(venv / "pip.conf"), **quiet, **variables) == expected


def test_an_installation_is_made_again_only_after_a_change(venv):
    links(venv)
    (venv / "given").unlink()
    assert make("install", f"VENV={venv}").returncode == 0
    assert not (venv / "given").exists()
    os.utime(venv / "installed", (0, 0))
    links(venv)
    assert (venv / "given").exists()


def test_only_development_installs_what_is_not_for_one_machine(venv):
    assert make("install", f"VENV={venv}").returncode == 0
    assert (venv / "given").read_text().split()[-1] == ".[all]"
    assert make("develop", f"VENV={venv}").returncode == 0
    assert (venv / "given").read_text().split()[-1] == ".[all,cluster,test,dev,docs]"
    (venv / "given").unlink()
    assert make("install", f"VENV={venv}").returncode == 0
    assert not (venv / "given").exists()


@pytest.mark.parametrize("python", ["false", "no-such-python"])
def test_another_python_is_refused_in_one_line(tmp_path, python):
    done = make("install", f"PYTHON={python}", f"VENV={tmp_path / 'venv'}")
    assert done.returncode == 2
    assert (
        f"Stepline needs Python 3.11, 3.12 or 3.13, and {python} is a different version: run make PYTHON=python3.12"
        in done.stderr
    )
    assert not (tmp_path / "venv").exists()

"""What the built package holds, and what it calls itself."""

import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import stepline

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    [file] = folder.glob("*.whl")
    return file


def test_the_wheel_holds_every_tracked_file_of_the_package(wheel):
    listed = subprocess.run(["git", "ls-files", "src"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    with zipfile.ZipFile(wheel) as archive:
        missing = {name.removeprefix("src/") for name in listed.splitlines()} - set(archive.namelist())
    assert "stepline/py.typed" in zipfile.ZipFile(wheel).namelist()
    assert missing == set()


def test_the_wheel_holds_the_licence_and_the_command(wheel):
    info = f"stepline-{stepline.__version__}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        assert archive.read(f"{info}/licenses/LICENSE") == (ROOT / "LICENSE").read_bytes()
        assert "stepline = stepline.__main__:main" in archive.read(f"{info}/entry_points.txt").decode()


def test_the_version_stands_in_one_place_and_is_repeated_truly():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["dynamic"] == ["version"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == stepline.__version__
    assert f'VERSION = "{stepline.__version__}"\n' in (ROOT / "workflow/rules/package.smk").read_text()
    assert f"## [{stepline.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_licence_is_apache_2():
    assert "Apache License\n                           Version 2.0, January 2004" in (ROOT / "LICENSE").read_text()
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["license"] == "Apache-2.0"


def test_the_command_shows_its_help():
    done = subprocess.run([sys.executable, "-m", "stepline", "--help"], check=True, capture_output=True, text=True)
    assert "stepline" in done.stdout

"""A small study of real data, computed once, which tests copy; and an environment that holds Snakemake alone."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, made_once
from tests.workflow.conda_standin import create, install
from tests.workflow.runs import DEMO_TABLE, HISTOGRAMS, TABLE, run, spacewalk


@pytest.fixture(scope="session")
def small_study(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The work folder of the small study, with its table."""
    return made_once(tmp_path_factory, "small-study", lambda folder: _compute(folder, real_data))


def _compute(folder: Path, real_data: Path) -> None:
    run(TABLE, *spacewalk(), folder=folder, mirror=real_data)


@pytest.fixture
def small(small_study: Path, tmp_path: Path) -> Path:
    """A copy of the small study's work folder."""
    return Path(shutil.copytree(small_study, tmp_path / "small", symlinks=True))


@pytest.fixture(scope="session")
def histograms(demo_mirror: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder with the demo's histograms and their table."""
    pytest.importorskip("av")

    def compute(folder: Path) -> None:
        (folder / "config.yaml").write_text(json.dumps({"demo": HISTOGRAMS}))
        run(DEMO_TABLE, "--configfile", "config.yaml", folder=folder, mirror=demo_mirror)

    return made_once(tmp_path_factory, "histograms", compute)


@pytest.fixture
def copied(whole: Path, tmp_path: Path) -> Path:
    """A copy of the folder that a file's tests read."""
    return Path(shutil.copytree(whole, tmp_path / "copy", symlinks=True))


@pytest.fixture(scope="session")
def tools(registry: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the stand-in in ``conda/`` and an environment that holds Snakemake alone in ``alone/``."""
    folder = tmp_path_factory.mktemp("tools")
    install(folder / "conda")
    pinned = f"[--constraint {ROOT / 'constraints.txt'}, snakemake]"
    create(f"dependencies: [python={sys.version_info[0]}.{sys.version_info[1]}, pip: {pinned}]", folder / "alone")
    absent = subprocess.run([folder / "alone/bin/python", "-c", "import numpy"], capture_output=True, check=False)
    assert b"No module named 'numpy'" in absent.stderr
    return folder

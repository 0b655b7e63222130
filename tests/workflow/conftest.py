"""A small study of real data, computed once; tests copy it and go on from there."""

import shutil
from pathlib import Path

import pytest

from tests.conftest import made_once
from tests.workflow.runs import TABLE, run, spacewalk


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

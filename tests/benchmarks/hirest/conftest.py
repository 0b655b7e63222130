import shutil
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from stepline.benchmark import Job
from stepline.benchmarks.hirest.benchmark import Hirest
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.config import validate
from tests.benchmarks.hirest.synthetic import BACKBONES, CONFIG, write_bank, write_releases
from tests.conftest import made_once


@pytest.fixture
def releases() -> None:
    """The releases and the text tower, in the test's folder."""
    write_releases()


@pytest.fixture
def banks(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same and the bank ``planted``."""

    def make(folder: Path) -> None:
        with chdir(folder):
            write_releases()
            write_bank(tmp_path_factory.mktemp("planted"))

    shutil.copytree(made_once(tmp_path_factory, "hirest-banks", make), ".", dirs_exist_ok=True)


def plan(changes: Mapping[str, Any] | None = None) -> Hirest:
    """Return the plan of the small study with some keys changed."""
    return Hirest.of(validate({"backbones": BACKBONES, "hirest": {**CONFIG, **(changes or {})}}), "hirest")


def inputs(entry: str, **changes: Any) -> HirestInputs:
    """Return what an entry of the small study reads."""
    made = plan(changes)
    return made.inputs(Job(release="v1", entry=made.entries[entry]))


def predicted(of: HirestInputs, *fits: Path) -> list[Found]:
    """Return what the entry's method predicts."""
    return list(of.entry.kind.method()().predict(of, fits))

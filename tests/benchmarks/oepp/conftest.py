import shutil
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from stepline.benchmark import Job
from stepline.benchmarks.oepp.benchmark import Oepp
from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.config import validate
from tests.benchmarks.oepp.synthetic import CONFIG, write_bank, write_releases
from tests.conftest import made_once


@pytest.fixture
def releases() -> None:
    """The release, in the test's folder."""
    write_releases()


@pytest.fixture
def banks(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The release and the bank ``planted``."""

    def make(folder: Path) -> None:
        with chdir(folder):
            write_releases()
            write_bank(tmp_path_factory.mktemp("planted"))

    shutil.copytree(made_once(tmp_path_factory, "oepp-banks", make), ".", dirs_exist_ok=True)


def plan(changes: Mapping[str, Any] | None = None) -> Oepp:
    """Return the plan of the small study with some keys changed."""
    return Oepp.of(validate({"oepp": {**CONFIG, **(changes or {})}}), "oepp")


def inputs(entry: str, **changes: Any) -> OeppInputs:
    """Return what an entry of the small study reads."""
    made = plan(changes)
    return made.inputs(Job(release="split1", entry=made.entries[entry]))

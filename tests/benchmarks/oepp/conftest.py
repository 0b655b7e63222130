from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stepline.benchmark import Job
from stepline.benchmarks.oepp.benchmark import Oepp
from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.config import validate
from tests.benchmarks.copied import copy_once
from tests.benchmarks.oepp.synthetic import CONFIG, write_bank, write_releases


@pytest.fixture
def releases() -> None:
    """The release, in the test's folder."""
    write_releases()


@pytest.fixture
def banks(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The release and the bank ``planted``."""

    def make(rows: Path) -> None:
        write_releases()
        write_bank(rows)

    copy_once(tmp_path_factory, "oepp-banks", make)


def plan(changes: Mapping[str, Any] | None = None) -> Oepp:
    """Return the plan of the small study with some keys changed."""
    return Oepp.of(validate({"oepp": {**CONFIG, **(changes or {})}}), "oepp")


def inputs(entry: str, **changes: Any) -> OeppInputs:
    """Return what an entry of the small study reads."""
    made = plan(changes)
    return made.inputs(Job(release="split1", entry=made.entries[entry]))

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stepline.benchmark import Job
from stepline.benchmarks.hirest.benchmark import Hirest
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.config import validate
from tests.benchmarks.copied import copy_once
from tests.benchmarks.hirest.synthetic import CONFIG, write_bank, write_releases
from tests.benchmarks.tower import BACKBONES


@pytest.fixture
def releases() -> None:
    """The releases and the text tower, in the test's folder."""
    write_releases()


@pytest.fixture
def banks(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same and the bank ``planted``."""

    def make(rows: Path) -> None:
        write_releases()
        write_bank(rows)

    copy_once(tmp_path_factory, "hirest-banks", make)


def plan(changes: Mapping[str, Any] | None = None) -> Hirest:
    """Return the plan of the small study with some keys changed."""
    return Hirest.of(validate({"backbones": BACKBONES, "hirest": {**CONFIG, **(changes or {})}}), "hirest")


def inputs(entry: str, **changes: Any) -> HirestInputs:
    """Return what an entry of the small study reads."""
    made = plan(changes)
    return made.inputs(Job(release="v1", entry=made.entries[entry]))


def predicted(of: HirestInputs, *fits: Path) -> list[Found]:
    """Return what the entry's method predicts, which may read only what the entry sees."""
    return list(of.benchmark.method(of.entry.kind)().predict(of.staged("predict"), fits))

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stepline.benchmark import Job
from stepline.benchmarks.htstep.benchmark import Htstep
from stepline.benchmarks.htstep.inputs import HtstepInputs
from stepline.benchmarks.htstep.kinds import Found
from stepline.config import validate
from tests.benchmarks.copied import copy_once
from tests.benchmarks.htstep.synthetic import CONFIG, write_banks, write_releases
from tests.benchmarks.tower import BACKBONES


@pytest.fixture
def releases() -> None:
    """The releases and the text tower, in the test's folder."""
    write_releases()


@pytest.fixture
def banks(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The same and the bank ``planted`` of HT-Step and CrossTask."""

    def make(rows: Path) -> None:
        write_releases()
        write_banks(rows)

    copy_once(tmp_path_factory, "htstep-banks", make)


def plan(changes: Mapping[str, Any] | None = None) -> Htstep:
    """Return the plan of the small study with some keys changed."""
    return Htstep.of(validate({"backbones": BACKBONES, "htstep": {**CONFIG, **(changes or {})}}), "htstep")


def inputs(entry: str, release: str = "v1", **changes: Any) -> HtstepInputs:
    """Return what an entry of the small study reads."""
    made = plan(changes)
    return made.inputs(Job(release=release, entry=made.entries[entry]))


def predicted(of: HtstepInputs, *fits: Path) -> list[Found]:
    """Return what the entry's method predicts, which may read only what the entry sees."""
    return list(of.benchmark.method(of.entry.kind)().predict(of.staged("predict"), fits))

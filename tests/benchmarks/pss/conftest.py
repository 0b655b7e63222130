from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from stepline.benchmarks.pss.benchmark import Pss
from stepline.config import validate
from stepline.datasets import pss
from stepline.datasets.schema import SPLITS
from tests.benchmarks.copied import copy_once
from tests.benchmarks.pss.synthetic import CONFIG, write_banks, write_releases


@pytest.fixture
def releases() -> None:
    """The releases, in the test's folder."""
    write_releases()


@pytest.fixture
def banks(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The releases and a bank of each name."""

    def make(rows: Path) -> None:
        write_releases()
        videos = {
            dataset: {each.video: each.segments for split in SPLITS for each in pss.load(dataset, split).values()}
            for dataset in pss.DATASETS
        }
        write_banks(rows, videos)

    copy_once(tmp_path_factory, "pss-banks", make)


def plan(changes: Mapping[str, Any] | None = None) -> Pss:
    """Return the plan of the small study with some keys changed."""
    return Pss.of(validate({"pss": {**CONFIG, **(changes or {})}}), "pss")

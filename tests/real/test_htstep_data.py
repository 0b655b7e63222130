"""HT-Step's public files, COIN in its form, and annotation made up on the real taxonomy."""

import csv
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from stepline.benchmarks.htstep.benchmark import Htstep
from stepline.config import validate
from stepline.datasets.htstep import (
    DATASETS,
    RELEASES,
    SPLITS,
    articles,
    split_videos,
    statistics,
    taxonomy,
)
from stepline.datasets.htstep_files import LAST_STEP
from stepline.datasets.htstep_transfer import coin, texts_of
from stepline.datasets.shards import assign
from stepline.fetch import fetch_release
from stepline.runs.table import table_rows
from tests.ledger import assert_in_ledger


@pytest.fixture(autouse=True)
def data(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))
    fetch_release(RELEASES, "v1")
    return real_data / "htstep"


def test_the_taxonomy_is_that_of_the_paper() -> None:
    steps = taxonomy()
    assert (len(steps), len({step.activity for step in steps.values()}), len(articles())) == (4958, 433, 617)
    assert max(steps) == LAST_STEP
    assert LAST_STEP + 1 - len(steps) == 827
    assert sum(after > before + 1 for before, after in pairwise(steps)) == 482  # runs of absent ids
    variations = Counter(Counter(activity for activity, _ in articles()).values())
    assert variations == {1: 335, 2: 37, 3: 43, 4: 12, 5: 5, 6: 1}
    assert sum(map(len, articles().values())) == 4958
    assert max(map(len, articles().values())) == 27
    assert max(Counter(step.activity for step in steps.values()).values()) == 35
    assert sum([steps[each].index for each in ids] != [*range(1, len(ids) + 1)] for ids in articles().values()) == 236
    assert sum(not step.paragraph for step in steps.values()) == 1016
    assert steps[129].variation == "A"
    assert steps[129].index == 1


def test_the_splits_have_the_counted_videos(data: Path) -> None:
    with (data / "splits_counts.csv").open(newline="") as file:
        counted = {row["split"]: int(row["videos_release"]) for row in csv.DictReader(file)}
    found = {split: len(videos) for split, videos in split_videos().items()}
    assert found | {"total": sum(found.values())} == counted
    assert statistics(*SPLITS).videos == len(DATASETS["htstep"].videos()) == 20_635


def test_videos_are_counted_as_in_the_ledger() -> None:
    rows = [row for row in table_rows(Htstep.of(validate({"htstep": {}}), "htstep"), "table1") if row.printed]
    assert Counter(row.status for row in rows) == {"exact": 5, "differs": 1, "needs": 12, "reference": 6}
    assert_in_ledger(row for row in rows if row.status != "reference")


def test_shards_are_of_twenty_hours_at_ten_minutes_a_video() -> None:
    shards = Counter(assign(DATASETS["htstep"].videos(), hours=20, known={}).values())
    assert len(shards) == 172
    assert {*shards.values()} == {120, 20_635 % 120}


def test_coin_has_its_events_and_actions(data: Path) -> None:
    fetch_release(RELEASES, "coin")
    texts, recordings = texts_of("coin"), coin()
    assert len(recordings) == len(DATASETS["coin"].videos()) == 10_070
    assert len({step.activity for step in texts.values()}) == 180
    assert len(texts) == 775  # of 778, as two events list three actions twice
    assert all(texts[segment.step].activity == each.activity for each in recordings for segment in each.segments)

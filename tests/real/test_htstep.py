"""HT-Step's released example of predictions, with annotation made up on the real taxonomy and splits."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from stepline.benchmark import Job
from stepline.benchmarks.htstep.benchmark import Htstep
from stepline.config import validate
from stepline.datasets.htstep import RELEASES, split_videos, taxonomy
from stepline.datasets.htstep_files import LAST_STEP
from stepline.datasets.htstep_submission import read_submission
from stepline.errors import ConfigError
from stepline.fetch import fetch_release
from stepline.metrics.grounding import PredictedSegments, Reading, TrueSegments, article_grounding
from tests.datasets.htstep_made import MATCH, make_annotations
from tests.datasets.test_htstep import annotate

EXAMPLE = "example_predictions_val_seen.csv"
READINGS: tuple[Reading, Reading] = ("official", "per_query")
BANK = "seconds"
"""Features of which only the number is read."""


@pytest.fixture(autouse=True)
def data(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))
    fetch_release(RELEASES, "v1")
    return real_data / "htstep"


def article_of() -> dict[int, tuple[str, str]]:
    return {step.id: (step.activity, step.variation) for step in taxonomy().values()}


def made(split: str) -> TrueSegments:
    records = make_annotations(0, [split])
    rows = [(video, *each["segment"], each["id"]) for video, of in records.items() for each in of["annotations"]]
    return TrueSegments(*map(list, zip(*rows, strict=True)))


def benchmark(**options: Any) -> Htstep:
    return Htstep.of(validate({"htstep": {"features": {"s3d": [BANK]}} | options}), "htstep")


def job(of: Htstep, entry: str) -> Job:
    return Job(release="v1", entry=of.entries[entry])


def test_the_released_example_is_read_and_scored(data: Path) -> None:
    videos = split_videos()["val_seen"]
    true, of_step = made("val_seen"), article_of()
    said = read_submission(data / EXAMPLE, videos, range(LAST_STEP + 1))
    assert Counter(said.video) == dict.fromkeys(videos, 5)
    absent = [step for step in said.step if step not in of_step]
    assert len(absent) == 27
    with pytest.raises(ConfigError, match=r"row \d+: the label '\d+' is not the number of a step$"):
        read_submission(data / EXAMPLE, videos, taxonomy())
    article = dict(zip(true.video, map(of_step.__getitem__, true.step), strict=True))
    outside = sum(of_step.get(step) != article[video] for video, step in zip(said.video, said.step, strict=True))
    assert len(absent) < outside < len(said.step)
    for reading in READINGS:
        scores = article_grounding(true, PredictedSegments(*said), of_step, reading=reading)
        assert scores.dropped.other_article == outside
        assert scores.n_predicted.sum() + sum(scores.dropped) == 3000
        assert 0 <= scores.mean < 0.05


def test_the_released_example_stands_for_the_entry_vina(data: Path, tmp_path: Path) -> None:
    annotate(make_annotations(0, ["val_seen"]))
    (tmp_path / "vina").mkdir()
    (tmp_path / "vina/val_seen.csv").symlink_to(data / EXAMPLE)
    plan = benchmark(files={"vina": str(tmp_path / "vina")}, match=MATCH)
    assert not plan.missing(plan.entries["vina"], "v1")
    inputs = plan.inputs(job(plan, "vina"))
    found = list(plan.method(inputs.entry.kind)().predict(inputs, []))
    assert [each.video for each in found] == list(split_videos()["val_seen"])
    assert all(len(each.steps) == 5 and [*each.scores] == sorted(each.scores, reverse=True) for each in found)
    values = plan.values(inputs, found)
    assert {name for name in values if "r1" in name} == set()
    assert {f"val_seen_{name}" for name in ("map", "query_map", "full_map", "partial_map", "dropped")} <= {*values}
    said = read_submission(data / EXAMPLE, split_videos()["val_seen"], range(LAST_STEP + 1))
    for name, reading in zip(("map", "query_map"), READINGS, strict=True):
        scores = article_grounding(made("val_seen"), PredictedSegments(*said), article_of(), reading=reading)
        assert values[f"val_seen_{name}"].values.mean() == pytest.approx(100 * scores.mean)
        if reading == "official":
            assert values["val_seen_dropped"].values == pytest.approx(100 * sum(scores.dropped) / 3000)
    assert values["val_seen_map"].counts == {"n_videos": 600, "n_listed": 600}

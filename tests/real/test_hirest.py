"""Predictions without a model on HiREST's released annotation, with the known scores of the released evaluation."""

import csv
import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from stepline.benchmarks.hirest.benchmark import Hirest
from stepline.config import validate
from stepline.datasets.hirest import BLINDED, RELEASES, Pair, load
from stepline.fetch import fetch_release
from stepline.metrics.moments import moment_hits, preprocess_moment_bounds, segmentation_scores
from stepline.runs.table import table_rows
from tests.ledger import assert_in_ledger

Interval = tuple[float, float]


def share(start: float, end: float) -> Callable[[Pair], Interval]:
    return lambda pair: (start * pair.duration_s, end * pair.duration_s)


def frames(pair: Pair) -> Interval:
    seconds = np.linspace(0, round(pair.duration_s) - 1, 32).astype(int)
    return float(seconds[8]), float(seconds[24])


MOMENTS: dict[str, Callable[[Pair], Interval]] = {
    "whole video": share(0, 1),
    "middle 80% (0.10-0.90)": share(0.1, 0.9),
    "middle 70% (0.15-0.85)": share(0.15, 0.85),
    "0.10-0.80": share(0.1, 0.8),
    "frames 8..24 of 32 (=8+1+8 around the centre)": frames,
}


def steps(pair: Pair, prediction: str) -> list[Interval]:
    if prediction == "ground truth as prediction":
        return [(step.start_s, step.end_s) for step in pair.steps]
    start_s, end_s = pair.bounds_s or BLINDED
    what = prediction.removeprefix("uniform split of GT moment, ")
    parts = max(1, round((end_s - start_s) / 15)) if what == "~15 s" else int(what.removeprefix("k="))
    edges = [start_s + (end_s - start_s) * part / parts for part in range(parts + 1)]
    return [*itertools.pairwise(edges)]


@pytest.mark.parametrize("task", ["moment_retrieval", "moment_segmentation"])
def test_trivial_predictions_have_the_known_scores(real_data: Path, monkeypatch: pytest.MonkeyPatch, task: str) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))
    fetch_release(RELEASES, "v1")
    with open(real_data / "hirest/derived_trivial_baselines.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["task"] == task]
    assert len(rows) == {"moment_retrieval": 16, "moment_segmentation": 32}[task]
    for row in rows:
        name = row["split"].split()[0]
        pairs = [each for each in load("test_507" if name == "test" and row["n"] == "507" else name) if each.clippable]
        if task == "moment_retrieval":
            guesses = [MOMENTS[row["prediction"]](each) for each in pairs]
            found = 100 * moment_hits([each.bounds_s or BLINDED for each in pairs], guesses).mean(axis=0)
        else:
            pairs = [each for each in pairs if each.steps]
            scores = []
            for each in pairs:
                made = steps(each, row["prediction"])
                if row["preprocess_moment_bounds"] == "with":
                    made = preprocess_moment_bounds(made, each.bounds_s or BLINDED).tolist()
                scores.append(segmentation_scores([(step.start_s, step.end_s) for step in each.steps], made))
            found = 100 * np.mean(scores, axis=0).ravel()
        known = [float(value) for name, value in row.items() if "@" in name and value]
        assert (len(pairs), [round(value, 2) for value in found.tolist()]) == (int(row["n"]), known), row


def test_statistics_are_the_papers(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))
    fetch_release(RELEASES, "v1")
    rows = table_rows(Hirest.of(validate({"hirest": {}}), "hirest"), "table1")
    assert [row.status for row in rows] == ["exact"] * 8
    assert_in_ledger(rows)

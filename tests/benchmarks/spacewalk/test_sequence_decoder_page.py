"""The record of docs/sequence-decoder.md against the script that writes it."""

import csv
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from stepline.benchmarks.spacewalk.methods.hmm import CHOICES
from tests.conftest import ROOT


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = spec_from_file_location("sequence_decoder", ROOT / "docs/sequence_decoder.py")
    assert spec
    assert spec.loader
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def record() -> list[dict[str, str]]:
    with open(ROOT / "docs/sequence-decoder-settings.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_chosen_are_the_best_of_the_record(script: ModuleType, record: list[dict[str, str]]) -> None:
    assert [*record[0]] == script.HEAD
    for entry, chosen in script.CHOSEN.items():
        tried = [row for row in record if row["entry"] == entry]
        best = max(tried, key=lambda row: float(row["accuracy_all"]) + float(row["map_all"]))
        assert {name: float(best[name]) for name in CHOICES} == chosen


def test_a_row_is_what_the_decoder_gives(in_spacewalk: Path, script: ModuleType, record: list[dict[str, str]]) -> None:
    chosen = script.CHOSEN[script.WORDS]
    (row,) = (row for row in record if row["entry"] == script.WORDS and {n: float(row[n]) for n in CHOICES} == chosen)
    videos = script.inputs_of(script.WORDS).annotation.splits["val"]
    found = np.mean([script.measured(script.WORDS, [chosen], video)[0][:2] for video in videos], axis=0)
    assert [f"{value:.2f}" for value in found] == [row["accuracy_val"], row["map_val"]]


def test_the_variants_are_the_decoder_where_they_change_nothing(in_spacewalk: Path, script: ModuleType) -> None:
    """Scores are evidence once they are standardised, and the chain is the decoder's before the division."""
    entry, video = script.WORDS, "11152019"
    setting, hmm = script.CHOSEN[entry], script.hmm
    told, raw = script.evidence(entry, video, 60.0), script.scores(entry, video)
    spread = raw.std(axis=0)
    assert np.allclose((raw - raw.mean(axis=0)) / np.where(spread > 0, spread, 1), told)
    labels = script.chain(told, setting, len(told), script.log_posteriors)
    divided = labels - script.log_sum(labels, axis=0)
    decoded = np.maximum(divided - script.log_sum(divided, axis=1)[:, None], hmm.LEAST)
    assert np.allclose(decoded, *hmm.decode([told], [setting]))


def test_forward_alone_ends_where_forward_and_backward_do(script: ModuleType) -> None:
    rng = np.random.default_rng(0)
    matrix = script.transitions(3, leave=0.3, reach=0.5, back=0.1)
    seen = rng.standard_normal((7, 5))
    states = script.forward(np.eye(5)[0], matrix, seen)
    assert np.allclose(np.exp(states).sum(axis=1), 1)
    for t in range(1, 8):
        smoothed = script.log_posteriors(np.eye(5)[0], matrix, seen[:t])
        with np.errstate(invalid="ignore"):
            assert np.allclose(np.exp(states[t - 1]), np.exp(smoothed[-1]))

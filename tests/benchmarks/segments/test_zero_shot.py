"""Labels as texts: the tower's vectors of the labels are compared with the mean features of segments."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.benchmarks.segments import zero_shot
from stepline.benchmarks.segments.benchmark import Segments
from stepline.errors import ConfigError
from tests.benchmarks.segments.conftest import COLOURS, LABELS, inputs, plan, predicted, vector
from tests.benchmarks.tower import BACKBONES, tower


def of_tower() -> Any:
    """Return the inputs of the entry of a backbone whose tower encodes the labels."""
    Path("tower.py").write_text(tower(vector).replace("DIMENSION = 32", "DIMENSION = 3"))
    return inputs("zero-shot-tower", plan(other={"backbones": BACKBONES}, backbones=["tower"]))


@pytest.fixture
def of() -> Any:
    return of_tower()


def test_the_label_with_the_highest_cosine_is_recognised(of: Any) -> None:
    assert [each.steps for each in predicted(of)] == [("wash", "cook", "cut")]


def test_some_networks_compare_by_the_dot_product(of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cosine with cook is the higher one, but wash has the longer vector."""
    (bank,) = of.banks
    monkeypatch.setitem(bank.rows, ("e", 0.0), np.array(COLOURS["wash"]) + 0.45 * np.array(COLOURS["cook"]))
    assert predicted(of)[0].steps[0] == "cook"
    monkeypatch.setattr(zero_shot, "similarity", lambda spec: "dot product")
    assert predicted(of)[0].steps[0] == "wash"


def test_a_step_that_is_named_by_a_number_is_compared_by_its_text(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("labels.csv").write_text(LABELS.replace("wash", "1"))
    monkeypatch.setattr(Segments, "texts", lambda *_: {"1": "wash"})
    of = of_tower()
    of.banks[0].rows["e", 0.0] = np.array(COLOURS["wash"])
    assert [each.steps for each in predicted(of)] == [("1", "cook", "cut")]


def test_each_label_is_encoded_once_for_the_data_set(of: Any) -> None:
    predicted(of)
    (folder,) = Path("features/tower-text").glob("*/segments/texts/mine")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    predicted(of)
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*")}


def test_features_of_another_size_are_one_line(of: Any) -> None:
    (bank,) = of.banks
    bank.rows = {key: row[:2] for key, row in bank.rows.items()}
    with pytest.raises(ConfigError, match="^tower: its text tower has vectors of 3 numbers, its features 2$"):
        predicted(of)

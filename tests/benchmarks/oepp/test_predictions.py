from pathlib import Path

import pytest

from stepline.benchmarks.oepp.predictions import Prediction, read_predictions, write_predictions
from stepline.benchmarks.pss import predictions as pss
from stepline.errors import StoreError
from stepline.metrics.plans import GUESS, NO_ACTION

PREDICTIONS = [
    Prediction(seed=0, part="base", video="COIN_a", index=0, plan=(4, NO_ACTION, 0)),
    Prediction(seed=1, part="novel", video="CrossTask_b", index=3, plan=(GUESS,)),
    Prediction(seed=1, part="val", video="COIN_-_b", index=7, plan=(2**40, 1)),
]


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    write_predictions(path, PREDICTIONS, about={"needs": [], "selection": "x"})
    assert read_predictions(path) == (PREDICTIONS, {"needs": [], "selection": "x"})
    content = path.read_bytes()
    write_predictions(path, PREDICTIONS, about={"needs": [], "selection": "x"})
    assert path.read_bytes() == content


def test_an_absent_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not there: run `stepline predict`"):
        read_predictions(tmp_path / "p.parquet")


def test_nothing_is_read_as_nothing(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    write_predictions(path, [], about={"needs": ["videos:openevent"], "selection": ""})
    assert read_predictions(path) == ([], {"needs": ["videos:openevent"], "selection": ""})


def test_a_file_of_another_benchmark_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "p.parquet"
    pss.write_predictions(path, [pss.Prediction(seed=0, split="test", video="a", segments=())], about={})
    with pytest.raises(StoreError, match=r"p.parquet is damaged \([^\n]+\): remove it and run `stepline predict`"):
        read_predictions(path)


@pytest.mark.parametrize("keep", [0, 100, -4])
def test_a_damaged_file_is_one_line(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "p.parquet"
    write_predictions(path, PREDICTIONS, about={})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(StoreError, match=r"p.parquet is damaged \([^\n]+\): remove it"):
        read_predictions(path)

from pathlib import Path

import pytest
from stepline.benchmarks.pss.predictions import Prediction, read_predictions, write_predictions

from stepline.errors import StoreError

PREDICTIONS = [
    Prediction(seed=0, split="test", video="a", segments=((1.5, 3.0), (2.0, 7.0)), scores=(0.5, 0.25)),
    Prediction(seed=1, split="val", video="b", segments=((0.0, 1.0),), sentences=("mix, then stir",)),
    Prediction(seed=1, split="val", video="c", segments=()),
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


@pytest.mark.parametrize("keep", [0, 100, -4])
def test_a_damaged_file_is_one_line(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "p.parquet"
    write_predictions(path, PREDICTIONS, about={})
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(StoreError, match=r"p.parquet is damaged \([^\n]+\): remove it"):
        read_predictions(path)

from pathlib import Path

import numpy as np
import pytest

from stepline.backbones.histogram import HistogramSpec
from stepline.features import store
from stepline.features.bank import Bank
from stepline.features.store import Damaged, Part
from stepline.report.timeline import likeness
from stepline.report.timeline.likeness import ABSENT, LAGS, strip

SPEC = HistogramSpec()


def rows_of(*kinds: int) -> np.ndarray:
    rows = np.zeros((len(kinds), SPEC.dimension), np.float32)
    rows[np.arange(len(kinds)), kinds] = 3.0
    return rows


def bank(rows: object) -> Bank:
    store.write(Path("features"), SPEC, {"a": rows}, 0.5)  # type: ignore[dict-item]
    return Bank.open([Path("features")], SPEC)


def test_each_row_is_compared_with_earlier_ones() -> None:
    found = strip(bank(rows_of(0, 0, 1, 0)), "a")
    assert not isinstance(found, str)
    assert (found.hop_s, found.low, found.high, found.values.shape) == (0.5, 0.0, 1.0, (len(LAGS), 4))
    assert found.values[:2].tolist() == [[ABSENT, 254, 0, 0], [ABSENT, ABSENT, 0, 254]]
    assert (found.values[2:] == ABSENT).all()


def test_of_a_long_video_rows_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likeness, "LONGEST", 4)
    found = strip(bank(rows_of(0, 0, 1, 1, 0, 0, 1, 1)), "a")
    assert not isinstance(found, str)
    assert (found.hop_s, found.values[0].tolist()) == (1.0, [ABSENT, 0, 0, 0])


def test_a_gap_is_absent() -> None:
    damaged = {"a": Damaged(key="k", spans=[], gaps=[(1.0, 2.0, "x")])}
    parts = [Part(rows_of(0, 0), 0.0, 0.0, 1.0), Part(rows_of(1, 1), 2.0, 2.0, 3.0)]
    store.write(Path("features"), SPEC, {"a": parts}, 0.5, damaged=damaged)
    found = strip(Bank.open([Path("features")], SPEC), "a")
    assert not isinstance(found, str)
    assert found.values[0].tolist() == [ABSENT, 254, ABSENT, ABSENT, ABSENT, 254]
    assert found.values[2].tolist() == [ABSENT, ABSENT, ABSENT, ABSENT, 0, 0]


def test_where_there_is_nothing_to_compare_it_says_so() -> None:
    assert strip(bank(rows_of(0)), "a") == "the video is too short to be compared with itself"
    assert strip(Bank.open([Path("features")], SPEC), "b") == "there are no features of this video"

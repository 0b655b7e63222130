from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stepline.benchmarks.oepp.methods.observations import Observations
from stepline.benchmarks.oepp.windows import NO_ROW, observation_rows
from stepline.datasets.oepp import PARTS
from tests.benchmarks.oepp.conftest import inputs
from tests.benchmarks.oepp.synthetic import planted

pytestmark = pytest.mark.usefixtures("banks")


@pytest.mark.parametrize("rule", ["released", "within"])
def test_rows_are_the_banks(rule: Any) -> None:
    of = inputs("mlp-t3", windows={"rows": rule})
    bank, n_zero = planted(), 0
    for part in PARTS:
        used = of.used(part)
        found = Observations.of(of, used)
        assert found.rows.dtype == np.float32
        assert found.index.shape == (len(used), 6)
        gathered = found.rows[found.index]
        for window, rows in zip(used, gathered, strict=True):
            its_own = bank[window.video]
            wanted = observation_rows(window.start, window.end, len(its_own), rule)
            n_zero += wanted.count(NO_ROW)
            naive = [its_own[row] if row != NO_ROW else np.zeros(8) for row in wanted]
            assert np.array_equal(rows, np.array(naive, np.float32))
    assert (n_zero > 0) == (rule == "released")


def test_each_row_is_stored_once_and_the_zeros_last() -> None:
    of = inputs("mlp-t3")
    used = of.used("train")
    found = Observations.of(of, used[::-1])
    asked = {
        (each.video, row)
        for each in used
        for row in observation_rows(each.start, each.end, len(of.bank[each.video]), "released")
    }
    assert len(found.rows) == len({pair for pair in asked if pair[1] != NO_ROW}) + 1
    assert set(found.index.ravel()) | {len(found.rows) - 1} == set(range(len(found.rows)))
    assert not found.rows[-1].any()
    forward = Observations.of(of, used)
    assert np.array_equal(found.rows[found.index], forward.rows[forward.index][::-1])


def test_a_window_that_begins_after_the_features_is_zeros_or_left_out() -> None:
    released, within = inputs("mlp-t3"), inputs("mlp-t3", windows={"rows": "within"})
    late = max(released.truth("base"), key=lambda each: each.end.start_s)
    for of in (released, within):
        length = int(late.start.start_s)
        of.bank.rows[late.video] = of.bank.rows[late.video][:length]
        of.bank.blocks[late.video] = [replace(block, length=length) for block in of.bank.blocks[late.video]]
    assert late in released.used("base")
    found = Observations.of(released, [late])
    assert (found.index[0, :3] == len(found.rows) - 1).all()
    left_out = [each for each in within.truth("base") if each not in within.used("base")]
    assert (released.late("base"), within.late("base")) == ([], left_out)
    assert late in left_out
    assert {each.video for each in left_out} == {late.video}


def test_no_window_has_no_rows() -> None:
    found = Observations.of(inputs("mlp-t3"), [])
    assert (found.rows.shape, found.index.shape) == ((1, 8), (0, 6))

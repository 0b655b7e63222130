"""Segments as UMT learns them, and back, by hand."""

from dataclasses import replace
from math import exp
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.models.umt_config import UmtConfig  # noqa: E402
from stepline.models.umt_moments import moments, targets  # noqa: E402

CONFIG = UmtConfig(feature_dim=1, text_dim=1)


def learned(*segments_s: Any, length: int = 12, **fields: Any) -> Any:
    """Return the targets of one video."""
    return targets([torch.tensor(segments_s)], length, replace(CONFIG, **fields))


def rows(found: Any) -> dict[int, tuple[float, float]]:
    """Return window and offset by the row that they are learned in."""
    at = found.weight[0].nonzero()[:, 0].tolist()
    return {row: (float(found.window[0, row]), float(found.offset[0, row])) for row in at}


def test_a_moment_of_n_rows_has_the_window_n_1_and_heat_about_its_centre() -> None:
    found = learned([3.0, 9.0])
    assert rows(found) == {5: (5.0, 0.5)}
    side = exp(-1 / (2 * 0.4**2))
    np.testing.assert_allclose(found.center[0], [0, 0, 0, 0, side, 1, side, 0, 0, 0, 0, 0], rtol=1e-6)
    assert found.moments == 1
    assert rows(learned([4.0, 5.0])) == {4: (0.0, 0.0)}
    assert learned([4.0, 5.0]).center.sum() == 1


def test_a_moment_shorter_than_a_row_has_a_window_below_0_as_released() -> None:
    assert rows(learned([4.5, 5.0])) == {4: (-0.5, -0.25 + 0.5)}
    assert rows(learned([0.0, 0.5])) == {0: (-0.5, -0.25)}


def test_the_unit_is_the_length_of_a_row() -> None:
    assert rows(learned([6.0, 18.0], unit=2.0)) == {5: (5.0, 0.5)}


def test_what_is_beyond_the_video_is_learned_in_its_last_row() -> None:
    found = learned([12.0, 30.0])
    assert rows(found) == {11: (17.0, 0.5)}
    side = exp(-1 / (2 * (4 * 0.2) ** 2))
    assert found.center[0, 10] == pytest.approx(side)


def test_heat_of_several_moments_is_the_higher_and_of_one_centre_the_last_moment_is_learned() -> None:
    found = learned([0.0, 12.0], [4.0, 5.0], [3.0, 6.0])
    assert rows(found) == {5: (11.0, 0.5), 4: (2.0, 0.0)}
    assert found.moments == 3
    assert found.center[0, 4] == found.center[0, 5] == 1
    assert found.center[0, 6] == pytest.approx(exp(-1 / (2 * 0.6**2)))
    reordered = learned([3.0, 6.0], [4.0, 5.0])
    assert rows(reordered) == {4: (0.0, 0.0)}


def test_each_video_has_its_own() -> None:
    given = [torch.tensor([[3.0, 9.0]]), torch.zeros(0, 2), torch.tensor([[1.0, 3.0], [4.0, 9.0]])]
    found = targets([each.clone() for each in given], 12, CONFIG)
    for number in (0, 2):
        one = targets([given[number]], 12, CONFIG)
        for all_of, own in zip(found[:4], one[:4], strict=True):
            assert torch.equal(all_of[[number]], own)
    assert not found.weight[1].any()
    assert found.moments == 3


def test_learning_leaves_the_segments_as_they_are() -> None:
    given = torch.tensor([[3.0, 9.0]])
    targets([given], 12, CONFIG)
    assert given.tolist() == [[3.0, 9.0]]


def said(center: Any, window: Any, offset: Any, **fields: Any) -> Any:
    return moments(*(torch.tensor([each]) for each in (center, window, offset)), replace(CONFIG, **fields))[0].tolist()


def test_what_is_learned_is_said_again() -> None:
    for unit in (1.0, 2.0):
        segments = torch.tensor([[3.0, 9.0], [10.0, 11.0]]) * unit
        of = targets([segments], 12, replace(CONFIG, unit=unit))
        found = moments(of.center, of.window, of.offset, replace(CONFIG, unit=unit, moments=2))
        assert sorted(found[0, :, :2].tolist()) == segments.tolist()


def test_the_best_come_first_the_earlier_of_equals_and_below_0_is_0() -> None:
    found = said([0.2, 0.9, 0.5, 0.9], [2.0, -3.0, 1.0, 0.0], [0.0, 0.25, -0.5, 0.0], moments=3)
    assert np.array(found) == pytest.approx(np.array([[1.25, 2.25, 0.9], [3.0, 4.0, 0.9], [1.5, 3.5, 0.5]]))


def test_moments_stay_in_the_video() -> None:
    found = said([0.9, 0.1, 0.1, 0.8], [9.0, 0.0, 0.0, 9.0], [0.0] * 4, unit=2.0, moments=2)
    assert np.array(found) == pytest.approx(np.array([[0.0, 8.0, 0.9], [0.0, 8.0, 0.8]]))
    assert said([0.9, 0.1], [0.0, 0.0], [0.0, 0.0], moments=100)[1] == pytest.approx([1.0, 2.0, 0.1])


def test_a_kernel_leaves_the_highest_of_neighbours() -> None:
    found = said([0.2, 0.9, 0.8, 0.1, 0.3], [0.0] * 5, [0.0] * 5, kernel=3)
    assert [each[2] for each in found] == pytest.approx([0.9, 0.3, 0, 0, 0])
    with pytest.raises(ValueError, match="kernel is 2: it must be odd"):
        replace(CONFIG, kernel=2)

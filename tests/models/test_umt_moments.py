"""Segments as UMT learns them, and back, by hand."""

from dataclasses import replace
from math import exp
from typing import Any

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


def test_a_moment_shorter_than_a_row_has_a_window_below_0_as_released() -> None:
    assert rows(learned([4.5, 5.0])) == {4: (-0.5, -0.25 + 0.5)}
    assert rows(learned([0.0, 0.5])) == {0: (-0.5, -0.25)}


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


def test_learning_leaves_the_segments_as_they_are() -> None:
    given = torch.tensor([[3.0, 9.0]])
    targets([given], 12, CONFIG)
    assert given.tolist() == [[3.0, 9.0]]


def test_what_is_learned_is_said_again() -> None:
    for unit in (1.0, 2.0):
        segments = torch.tensor([[3.0, 9.0], [10.0, 11.0]]) * unit
        of = targets([segments], 12, replace(CONFIG, unit=unit))
        found = moments(of.center, of.window, of.offset, replace(CONFIG, unit=unit, moments=2))
        assert sorted(found[0, :, :2].tolist()) == segments.tolist()


def test_neither_an_offset_nor_a_window_is_below_0() -> None:
    center, below = torch.tensor([[0.0, 0.0, 1.0, 0.0]]), torch.full((1, 4), -0.75)
    made = moments(center, below, below, replace(CONFIG, moments=1))
    assert made[0, 0].tolist() == [2.0, 3.0, 1.0]


def test_a_moment_is_cut_to_the_video() -> None:
    center, window = torch.tensor([[0.0, 0.0, 1.0, 0.0]]), torch.full((1, 4), 20.0)
    assert moments(center, window, torch.zeros(1, 4), replace(CONFIG, moments=1))[0, 0].tolist() == [0.0, 4.0, 1.0]


def test_a_centre_is_the_most_likely_of_the_rows_of_its_kernel() -> None:
    center, nothing = torch.tensor([[0.25, 0.875, 0.5, 0.375, 0.625]]), torch.zeros(1, 5)
    for kernel, expected in ((1, [0.875, 0.625, 0.5]), (3, [0.875, 0.625, 0]), (5, [0.875, 0.625, 0])):
        made = moments(center, nothing, nothing, replace(CONFIG, kernel=kernel, moments=3))
        assert made[0, :, 2].tolist() == expected, kernel


def test_a_kernel_of_an_even_number_of_rows_is_one_line() -> None:
    with pytest.raises(ValueError, match="kernel is 2: it must be odd"):
        replace(CONFIG, kernel=2)

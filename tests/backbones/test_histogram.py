from dataclasses import replace

import numpy as np
import pytest

from stepline.backbones.histogram import HistogramSpec, describe

pytest.importorskip("cv2")
SPEC = HistogramSpec()


def frame(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (9, 16, 3), np.uint8).repeat(20, 0).repeat(20, 1)


def test_descriptors_have_length_one_and_compare_by_their_dot_product() -> None:
    one, other = describe(frame(0), SPEC), describe(frame(1), SPEC)
    assert one.shape == (SPEC.dimension,)
    assert one.dtype == np.float32
    assert one @ one == pytest.approx(1)
    assert 0 < one @ other < 0.9
    assert np.array_equal(one, describe(frame(0), SPEC))


@pytest.mark.parametrize("colour", [(0, 0, 0), (255, 255, 255), (200, 30, 30)])
def test_a_plain_frame_fills_one_colour_and_no_edge(colour: tuple[int, int, int]) -> None:
    plain = np.full((90, 160, 3), colour, np.uint8)
    cells = describe(plain, SPEC).reshape(SPEC.rows * SPEC.columns, -1)
    assert ((cells > 0).sum(1) == 2).all()
    assert (cells[:, -1] > 0).all()
    assert describe(plain, SPEC) @ describe(plain, SPEC) == pytest.approx(1)


def test_colour_place_and_direction_each_matter() -> None:
    red, blue = np.zeros((2, 90, 160, 3), np.uint8)
    red[:, :80, 0] = blue[:, :80, 2] = 255
    assert describe(red, SPEC) @ describe(blue, SPEC) < 0.85
    assert describe(red, SPEC) @ describe(red[:, ::-1], SPEC) < 0.85
    stripes = np.zeros((96, 96, 3), np.uint8)
    stripes[np.arange(96) // 8 % 2 == 1] = 255
    upright = np.ascontiguousarray(stripes.transpose(1, 0, 2))
    square = replace(SPEC, width=96, height=96, rows=1, columns=1, hues=1, saturations=1, values=1)
    across, down = describe(stripes, square)[1:-1], describe(upright, square)[1:-1]
    assert across.argmax() == square.directions // 2
    assert down.argmax() == 0


def test_what_decides_the_numbers_decides_the_path() -> None:
    assert SPEC.id == HistogramSpec().id
    assert len({SPEC.id, replace(SPEC, fps=1).id, replace(SPEC, hues=4).id, replace(SPEC, revision=2).id}) == 4

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.errors import ConfigError
from stepline.models import context
from stepline.models.context import Block, Segments, average, concatenation, n_segments, rows_of

SECONDS = np.arange(200, dtype=np.float32)[:, None] * [1, 100]
"""A bank whose row at second s is (s, 100 s)."""


def at(*times_s: float) -> np.ndarray:
    return np.array(times_s, np.float64)


def test_an_odd_window_has_the_segment_that_holds_t_in_its_middle() -> None:
    """60 s at 100 s: segments begin at 70, 82, 94, 106, 118; 94 holds 100."""
    assert n_segments(60) == 5
    assert rows_of(at(100), 60, 200).tolist() == [[70, 82, 94, 106, 118]]
    assert average(SECONDS, at(100), 60).tolist() == [[94, 9400]]
    expected = [(70 + 82) / 2, 7600, 94, 9400, (106 + 118) / 2, 11200]
    assert concatenation(SECONDS, at(100), 60).tolist() == [expected]


def test_an_even_window_has_the_segment_that_begins_at_t() -> None:
    """48 s at 100 s: segments begin at 76, 88, 100, 112; t is the border of the second and the third."""
    assert rows_of(at(100), 48, 200).tolist() == [[76, 88, 100, 112]]
    assert average(SECONDS, at(100), 48).tolist() == [[94, 9400]]
    assert concatenation(SECONDS, at(100), 48).tolist() == [[82, 8200, 100, 10000, 112, 11200]]


def test_the_nearest_second_stands_for_a_segment_of_equally_near_ones_the_later() -> None:
    assert rows_of(at(100.4, 100.5, 100.6), 36, 200)[:, 1].tolist() == [94, 95, 95]


def test_segments_outside_are_left_out_and_an_empty_side_is_zeros() -> None:
    """60 s at 20 s begin at -10, 2, 14, 26, 38; at 190 s at 160, 172, 184, 196, 208; at 8 s at -22, -10, 2, 14, 26."""
    rows = rows_of(at(20, 190, 8), 60, 200)
    assert rows.tolist() == [[-1, 2, 14, 26, 38], [160, 172, 184, 196, -1], [-1, -1, 2, 14, 26]]
    assert average(SECONDS, at(20, 190, 8), 60)[:, 0].tolist() == [20, 178, 14]
    found = concatenation(SECONDS, at(20, 190, 8), 60)[:, ::2]
    assert found.tolist() == [[2, 14, 32], [166, 184, 196], [0, 2, 20]]


@pytest.mark.parametrize(("t_s", "row"), [(2, 0), (0, 0), (250, 199)])
def test_the_querys_segment_is_never_left_out(t_s: float, row: int) -> None:
    assert rows_of(at(t_s), 36, 200)[0, 1] == row
    assert concatenation(SECONDS, at(t_s), 36)[0, 2] == row


@pytest.mark.parametrize("context_s", [12, 24, 30, 37.5, 0])
def test_a_window_that_is_not_three_or_more_whole_segments_is_one_line(context_s: float) -> None:
    with pytest.raises(ConfigError, match=f"^a window of {context_s:g} s: long context needs 3 or more whole segments"):
        average(SECONDS, at(100), context_s)


@given(
    st.integers(1, 90), st.integers(3, 9), st.lists(st.floats(0, 90), min_size=1, max_size=6), st.sampled_from([12, 24])
)
def test_sums_are_those_of_each_windows_own_rows(length: int, count: int, times: list[float], block: int) -> None:
    bank = np.random.default_rng(length).standard_normal((length, 3)).astype(np.float16)
    rows, middle = rows_of(at(*times), 12 * count, length), count // 2
    sides = [[bank[[r for r in row[part] if r >= 0]].astype(np.float64) for part in (slice(middle), slice(middle + 1, None))] for row in rows]  # fmt: skip  # noqa: E501
    query = bank[rows[:, middle]].astype(np.float64)
    parts = [[side.mean(axis=0) if len(side) else np.zeros(3) for side in pair] for pair in sides]
    expected = np.array([np.concatenate([pair[0], each, pair[1]]) for pair, each in zip(parts, query, strict=True)])
    means = [np.concatenate([*pair, each[None]]).mean(axis=0) for pair, each in zip(sides, query, strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(context, "BLOCK", block)
        np.testing.assert_allclose(concatenation(bank, at(*times), 12 * count), expected, atol=1e-6)
        np.testing.assert_allclose(average(bank, at(*times), 12 * count), means, atol=1e-6)


def test_a_bank_on_disk_gives_the_same_and_is_read_in_blocks(tmp_path: Path) -> None:
    bank = np.random.default_rng(0).standard_normal((5000, 8)).astype(np.float16)
    np.save(tmp_path / "bank.npy", bank)
    mapped = np.load(tmp_path / "bank.npy", mmap_mode="r")
    read: list[int] = []

    class Watched:
        shape = mapped.shape

        def __getitem__(self, rows: slice) -> np.ndarray:
            read.append(len(range(*rows.indices(5000))))
            return np.asarray(mapped[rows])

    times = np.linspace(0, 5000, 50)
    found = concatenation(Watched(), times, 1200)
    np.testing.assert_array_equal(found, concatenation(bank, times, 1200))
    assert found.dtype == np.float32
    assert sum(read) == 5000
    assert max(read) <= 1200


def test_segments_put_blocks_together_when_they_are_read() -> None:
    seen = np.array([[3, 4], [0, 2], [5, 0], [1, 1]], np.float16)
    texts = Block(np.array([[0.0, 2.0], [0.0, 0.0]], np.float32), np.array([0, 1, 0]))
    plain = Segments((Block(seen), texts, texts))
    assert plain.shape == (3, 6)
    assert plain[:2].tolist() == [[3, 4, 0, 2, 0, 2], [0, 2, 0, 0, 0, 0]]
    assert plain[np.array([[2], [0]])].tolist() == [[[5, 0, 0, 2, 0, 2]], [[3, 4, 0, 2, 0, 2]]]
    assert average(plain, at(1), 36).tolist() == [[3, 4, 0, 2, 0, 2]]
    scaled = Segments((Block(seen), texts), normalise=True)
    np.testing.assert_allclose(scaled[:2], [[0.6, 0.8, 0, 1], [0, 1, 0, 0]], rtol=1e-6)

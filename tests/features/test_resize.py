import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.interpolate import interp1d

from stepline.features.resize import resize

sizes = st.integers(1, 60)


@given(sizes.filter(lambda n: n > 1), sizes.filter(lambda n: n > 1))
def test_the_rows_are_those_of_scipy(n: int, length: int) -> None:
    places = [i * float(n - 1) / (length - 1) for i in range(length)]
    expected = interp1d(np.arange(n), np.arange(n), kind="nearest")(places)
    assert resize(np.arange(n)[:, None], length)[:, 0].tolist() == expected.tolist()


def test_of_two_equally_near_rows_the_earlier_is_taken() -> None:
    assert resize(np.arange(2)[:, None], 3)[:, 0].tolist() == [0, 0, 1]
    assert resize(np.arange(4)[:, None], 3)[:, 0].tolist() == [0, 1, 3]


@given(sizes, sizes)
def test_rows_come_in_order_and_as_they_are(n: int, length: int) -> None:
    rows = np.random.default_rng(0).standard_normal((n, 3)).astype(np.float16)
    found = resize(rows, length)
    assert found.shape == (length, 3)
    assert found.dtype == np.float16
    index = resize(np.arange(n)[:, None], length)[:, 0]
    assert (np.diff(index) >= 0).all()
    assert index[0] == 0
    assert length == 1 or index[-1] == n - 1
    np.testing.assert_array_equal(found, rows[index])


@pytest.mark.parametrize(("n", "length"), [(0, 5), (5, 0)])
def test_nothing_cannot_be_resized(n: int, length: int) -> None:
    with pytest.raises(ValueError, match=f"{n} rows cannot be resized to {length}"):
        resize(np.zeros((n, 2)), length)

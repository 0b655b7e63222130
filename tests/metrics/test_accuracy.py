import numpy as np
import pytest

from stepline.metrics.accuracy import accuracy


def test_right_predictions_count_and_label_0_like_any_other() -> None:
    assert accuracy(np.array([0, 1, 2, 0]), np.array([0, 1, 1, 2]), n_classes=3) == 0.5


def test_a_guess_is_credited_with_its_odds() -> None:
    labels = np.array([1, 0, 1, 0])
    assert accuracy(labels, np.full(4, -1), n_classes=2) == 0.5
    assert accuracy(labels, np.full(4, -1), n_classes=8) == 0.125
    assert accuracy(labels, np.array([1, 0, -1, 1]), n_classes=4) == (2 + 0.25) / 4
    assert accuracy(labels, np.array([1, -2, -3, -1]), n_classes=4) == (1 + 0.25) / 4


def test_accuracy_of_nothing_is_undefined() -> None:
    with pytest.raises(ValueError, match="undefined"):
        accuracy(np.array([], np.int64), np.array([], np.int64), n_classes=2)

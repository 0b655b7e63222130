import numpy as np
import pytest

from stepline.metrics.bootstrap import bootstrap_interval


def test_the_same_seed_gives_the_same_interval_and_another_one_another() -> None:
    values = np.random.default_rng(0).random(12).tolist()
    first = bootstrap_interval(values, samples=1000, seed=3)
    assert first == bootstrap_interval(values, samples=1000, seed=3)
    assert first != bootstrap_interval(values, samples=1000, seed=4)
    assert min(values) <= first[0] < np.mean(values) < first[1] <= max(values)


def test_one_video_gives_no_interval_and_equal_ones_a_point() -> None:
    assert np.isnan(bootstrap_interval([5.0], samples=100, seed=0)).all()
    assert np.isnan(bootstrap_interval([], samples=100, seed=0)).all()
    assert bootstrap_interval([5.0] * 4, samples=100, seed=0) == (5.0, 5.0)


def test_the_interval_covers_the_mean_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(200):
        low, high = bootstrap_interval(rng.normal(10, 3, 40).tolist(), samples=400, seed=seed)
        covered += low <= 10 <= high
    assert 180 <= covered <= 200


def test_the_interval_of_many_draws_is_that_of_95_percent() -> None:
    """Of 0 and 1 forty times each, means of draws are about normal with a standard deviation of 0.5 / sqrt(80)."""
    low, high = bootstrap_interval([0.0, 1.0] * 40, samples=20000, seed=0)
    assert (high - low) / 2 == pytest.approx(1.96 * 0.5 / 80**0.5, rel=0.05)

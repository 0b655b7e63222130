import numpy as np
import pytest

from stepline.metrics.bootstrap import bootstrap_interval, paired_interval


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


def test_a_draw_of_weighted_videos_is_the_mean_over_their_windows() -> None:
    """A video of three windows and one of one; of two draws, a quarter has the first twice, a quarter the second."""
    values, weights = [1.0, 0.0], [3, 1]
    assert bootstrap_interval(values, samples=1000, seed=0, weights=weights) == (0, 1)
    many = [1.0, 0.0] * 40, [3, 1] * 40
    low, high = bootstrap_interval(many[0], samples=2000, seed=0, weights=many[1])
    assert low < 0.75 < high
    plain = bootstrap_interval(many[0], samples=2000, seed=0)
    assert plain[1] < 0.75
    assert bootstrap_interval(many[0], samples=2000, seed=0, weights=[2] * 80) == pytest.approx(plain)
    draws = np.random.default_rng(5).integers(3, size=(50, 3))
    values, weights = [0.2, 0.9, 0.4], [1, 5, 2]
    means = [np.average(np.take(values, each), weights=np.take(weights, each)) for each in draws]
    found = bootstrap_interval(values, samples=50, seed=5, weights=weights)
    assert found == pytest.approx(np.quantile(means, [0.025, 0.975]))


def test_weights_are_above_0_and_one_for_each_video() -> None:
    for weights in ([1.0], [1.0, 0.0], [1.0, float("nan")]):
        with pytest.raises(ValueError, match="above 0 and one for each of 2 videos"):
            bootstrap_interval([5.0, 6.0], samples=10, seed=0, weights=weights)
    assert np.isnan(bootstrap_interval([5.0], samples=10, seed=0, weights=[2])).all()


def test_a_difference_is_paired_by_video() -> None:
    """Videos differ much and methods little: unpaired, the interval would be as wide as the videos are apart."""
    first, second = [10.0, 30.0, 50.0, 70.0], [9.0, 28.0, 49.0, 68.0]
    found = paired_interval(first, second, samples=2000, seed=0)
    assert found.mean == 1.5
    assert 1 <= found.low <= 1.5 <= found.high <= 2
    assert found.share_above == 1
    assert found == paired_interval(first, second, samples=2000, seed=0)


def test_a_difference_turns_round_with_its_sides() -> None:
    values = np.random.default_rng(1).normal(size=(2, 9))
    there = paired_interval(*values.tolist(), samples=500, seed=3)
    back = paired_interval(*values[::-1].tolist(), samples=500, seed=3)
    assert there[:3] == pytest.approx((-back.mean, -back.high, -back.low))
    assert there.share_above + back.share_above == pytest.approx(1)


def test_the_share_above_0_is_that_of_resamples() -> None:
    """Of two videos with 1 and -1 a quarter of the draws has the mean 1, half 0 (not above), a quarter -1."""
    assert paired_interval([1.0, 0.0], [0.0, 1.0], samples=20000, seed=0).share_above == pytest.approx(0.25, abs=0.01)


def test_equal_methods_are_never_above_and_one_video_says_nothing() -> None:
    assert paired_interval([3.0, 4.0], [3.0, 4.0], samples=50, seed=0) == (0, 0, 0, 0)
    one = paired_interval([3.0], [1.0], samples=50, seed=0)
    assert one.mean == 2
    assert np.isnan(one[1:]).all()
    with pytest.raises(ValueError, match="2 and 1 videos cannot be paired"):
        paired_interval([3.0, 4.0], [1.0], samples=50, seed=0)


def test_a_difference_of_weighted_videos_is_the_mean_over_their_windows() -> None:
    first, second, weights = [0.2, 0.9, 0.4], [0.1, 0.5, 0.6], [1, 5, 2]
    found = paired_interval(first, second, samples=50, seed=5, weights=weights)
    differences = np.subtract(first, second)
    draws = np.random.default_rng(5).integers(3, size=(50, 3))
    means = [np.average(differences[each], weights=np.take(weights, each)) for each in draws]
    assert found.mean == pytest.approx(np.average(differences, weights=weights))
    assert found[1:] == pytest.approx((*np.quantile(means, [0.025, 0.975]), np.mean(np.array(means) > 0)))
    with pytest.raises(ValueError, match="above 0 and one for each of 3 videos"):
        paired_interval(first, second, samples=50, seed=5, weights=[1, 2])

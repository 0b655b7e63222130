"""What the methods share: whose rankings and pairs there are, and how similarities are ordered."""

import numpy as np
import pytest

from stepline.benchmark import UnavailableError
from stepline.benchmarks.hirest.methods.found import asked, rankings, stepped
from stepline.needs import Need
from tests.benchmarks.hirest.conftest import inputs
from tests.benchmarks.hirest.synthetic import QUERIES, recordings


def test_similarities_that_differ_by_how_sums_are_rounded_are_equal() -> None:
    scores = np.array([[0.5, 0.5 - 1e-13, 0.5 + 1e-8, 0.5 + 1e-13], [-np.inf, 3, -np.inf, -7]])
    first, second = rankings(["p", "q"], ["b", "c", "a", "d"], scores)
    assert (first.query, first.ranked, first.pool) == ("p", ("a", "d", "c", "b"), 4)
    assert (second.query, second.ranked, second.pool) == ("q", ("c", "d", "b", "a"), 4)


def test_the_best_50_are_kept() -> None:
    pool = [f"v{number:02}" for number in range(60)]
    (made,) = rankings(["q"], pool, -np.arange(60.0)[None])
    assert (made.ranked, made.pool) == (tuple(pool[:50]), 60)


@pytest.mark.usefixtures("releases")
def test_a_query_is_asked_where_any_of_its_videos_is_there() -> None:
    """Also one without a moment, which answers as a whole."""
    answers = inputs("random").queries
    assert [(query, video) for query, videos in answers.items() for video in videos] == [
        (each.query, each.video) for each in recordings() if each.split == "test"
    ]
    assert asked(inputs("random"), ["test-1-2"]) == [QUERIES["test"][1]]
    assert asked(inputs("random"), ["test-3-2", "other-0", "test-0-1", "train-1-0"]) == [
        QUERIES["test"][0],
        QUERIES["test"][3],
    ]
    with pytest.raises(UnavailableError) as raised:
        asked(inputs("random"), ["other-0"])
    assert raised.value.needs == (Need("videos", "hirest"),)


@pytest.mark.usefixtures("releases")
def test_moments_with_annotated_steps_are_those_of_val_and_the_public_ones_of_test() -> None:
    public = [each for each in recordings() if each.annotated and each.split in ("val", "test")]
    expected = [(each.video, each.bounds) for each in public if each.split == "val" or each.video.endswith("-0")]
    assert [(pair.video, bounds_s) for pair, bounds_s in stepped(inputs("truth"))] == expected

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stepline.errors import ConfigError
from stepline.models.tw_finch import STEPS, tw_finch

PUBLISHED = json.loads(Path(__file__).with_name("tw_finch.json").read_text())
"""Digests of the labels, renumbered by first appearance, that TW-FINCH/python/twfinch.py of ssarfraz/FINCH-Clustering
at c6cf7b6 returned for ``made_up`` features (its later calls for a number of clusters fail)."""

few = st.integers(-2, 2)
tied = st.tuples(st.integers(1, 24), st.integers(1, 3)).flatmap(
    lambda shape: arrays(np.int8, shape, elements=few, fill=st.nothing())
)


def made_up(kind: str, n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((n, 16))
    if kind == "walk":
        features = features.cumsum(axis=0) + 5
    if kind == "scenes":
        means = 2 * rng.standard_normal((n // 25, 16))
        features = means[np.sort(rng.integers(0, n // 25, n))] + 0.3 * features
    return features.astype(np.float32)


def digest(labels: np.ndarray) -> str:
    return hashlib.sha256(labels.astype("<i8").tobytes()).hexdigest()[:16]


def plain(features: np.ndarray, n_segments: int) -> list[int]:
    """Return the clusters by a loop over whole matrices and sets of rows, kept in order of their first ones."""

    def distances(clusters: list[list[int]]) -> np.ndarray:
        means = np.array([features[rows].mean(axis=0, dtype=np.float64) for rows in clusters])
        times = np.array([np.mean(rows) for rows in clusters])
        lengths = np.linalg.norm(means, axis=1)
        cosines = means @ means.T / (lengths[:, None] * lengths).clip(1e-12)
        found = np.rint((1 - cosines) * STEPS).clip(0) * abs(times[:, None] - times)
        np.fill_diagonal(found, np.inf)
        return found

    def join(clusters: list[list[int]], links: list[tuple[int, int]]) -> list[list[int]]:
        owner = list(range(len(clusters)))
        for a, b in links:
            low, high = sorted((owner[a], owner[b]))
            owner = [low if each == high else each for each in owner]
        joined: dict[int, list[int]] = {}
        for cluster, each in zip(clusters, owner, strict=True):
            joined.setdefault(each, []).extend(cluster)
        return sorted((sorted(rows) for rows in joined.values()), key=min)

    clusters = [[row] for row in range(len(features))]
    if len(clusters) > 1:
        clusters = join(clusters, list(enumerate(distances(clusters).argmin(axis=1))))
    coarser = clusters
    while len(coarser) >= n_segments and len(clusters) > n_segments:
        clusters, found = coarser, distances(coarser)
        coarser = join(clusters, list(enumerate(found.argmin(axis=1))))
    while len(clusters) > n_segments:
        clusters = join(clusters, [divmod(int(distances(clusters).argmin()), len(clusters))])
    labels = {row: number for number, rows in enumerate(clusters) for row in rows}
    return [labels[row] for row in range(len(features))]


@pytest.mark.parametrize("case", PUBLISHED)
def test_partitions_are_those_of_the_published_code(case: str) -> None:
    kind, n, seed, n_segments = case.split()
    labels = tw_finch(made_up(kind, int(n), int(seed)), int(n_segments))
    assert labels.dtype == np.int64
    assert digest(labels) == PUBLISHED[case]


@given(tied, st.integers(1, 8), st.integers(1, 30))
def test_it_is_the_plain_loop_for_any_block_and_however_many_are_equally_near(
    features: np.ndarray, n_segments: int, block: int
) -> None:
    assert tw_finch(features, n_segments, block=block).tolist() == plain(features, n_segments)


@settings(max_examples=25)
@given(st.integers(0, 99), st.integers(1, 12), st.integers(1, 50))
def test_it_is_the_plain_loop_on_what_never_ties(seed: int, n_segments: int, block: int) -> None:
    features = made_up("walk", 40, seed)
    assert tw_finch(features, n_segments, block=block).tolist() == plain(features, n_segments)


@given(st.sampled_from([0.25, 3.0, 1e-4]), st.integers(1, 9))
def test_a_scale_in_common_changes_nothing(scale: float, n_segments: int) -> None:
    features = made_up("scenes", 100, 0).astype(np.float64)
    assert tw_finch(features * scale, n_segments).tolist() == tw_finch(features, n_segments).tolist()


@settings(max_examples=20)
@given(st.permutations(range(16)))
def test_the_order_of_the_columns_changes_nothing(order: list[int]) -> None:
    features = made_up("scenes", 100, 0)
    assert tw_finch(features[:, order], 5).tolist() == tw_finch(features, 5).tolist()


def test_there_are_as_many_segments_as_asked_for_up_to_the_first_partition() -> None:
    features = made_up("noise", 200, 0)
    first = tw_finch(features, 200)
    many = int(first.max()) + 1
    assert 60 < many <= 100
    for n_segments in range(1, many + 1):
        assert tw_finch(features, n_segments).max() + 1 == n_segments
    assert tw_finch(features, many + 1).tolist() == first.tolist()


def test_few_rows_and_rows_of_zeros_have_clusters_too() -> None:
    assert tw_finch(np.zeros((0, 4)), 3).tolist() == []
    assert tw_finch(np.ones((1, 4)), 3).tolist() == [0]
    assert tw_finch(np.zeros((4, 4)), 2).tolist() == [0, 0, 0, 0]


def test_no_segments_is_one_line() -> None:
    with pytest.raises(ConfigError, match="^0 segments are not allowed"):
        tw_finch(np.ones((3, 4)), 0)

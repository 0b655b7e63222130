"""Agreement, against published examples and by hand."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.metrics.agreement import krippendorff_alpha, pairwise_agreement, unanimity

# Krippendorff (2011), "Computing Krippendorff's Alpha-Reliability", C: four observers, twelve units, gaps.
OBSERVERS = (
    (1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None),
    (1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3),
    (None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None),
    (1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None),
)
# The same, A: two observers, binary.
BINARY = ((0, 1, 0, 0, 0, 0, 0, 0, 1, 0), (1, 1, 1, 0, 0, 1, 0, 0, 0, 0))
# Fleiss's kappa as its textbooks print it: ten units, fourteen raters, how many chose each of five labels.
FLEISS = (
    *((0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1)),
    *((7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7)),
)


def units(observers: tuple[tuple[int | None, ...], ...]) -> list[list[int]]:
    return [[label for label in labels if label is not None] for labels in zip(*observers, strict=True)]


def test_alpha_is_the_published_one() -> None:
    assert krippendorff_alpha(units(OBSERVERS)) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(units(BINARY)) == pytest.approx(0.095, abs=5e-4)


def test_a_published_table_of_fleiss() -> None:
    told = [[label for label, count in enumerate(counts) for _ in range(count)] for counts in FLEISS]
    assert pairwise_agreement(told) == pytest.approx(0.378, abs=5e-4)
    # With as many labels on each unit, 1 - alpha = (1 - kappa) (n - 1) / n, n labels in all; kappa is 0.210.
    assert 1 - krippendorff_alpha(told) == pytest.approx((1 - 0.210) * 139 / 140, abs=5e-4)


def test_by_hand() -> None:
    told = [[1, 1, 2], [0, 0], [3], [], [2, 2]]
    assert pairwise_agreement(told) == pytest.approx((1 / 3 + 1 + 1) / 3)
    assert unanimity(told) == pytest.approx(2 / 3)
    # Paired: 1 1 2, 0 0, 2 2. Observed 3 * (2/3) / 7; expected 1 - (2 + 2 + 6) / 42.
    assert krippendorff_alpha(told) == pytest.approx(1 - (2 / 7) / (32 / 42))


@pytest.mark.parametrize("nothing", [[], [[]], [[1], [2], []]])
def test_nobody_agrees_with_himself(nothing: list[list[int]]) -> None:
    assert all(math.isnan(of(nothing)) for of in (krippendorff_alpha, pairwise_agreement, unanimity))


def test_alpha_of_one_label_alone_is_undefined() -> None:
    assert math.isnan(krippendorff_alpha([[4, 4], [4, 4, 4]]))
    assert pairwise_agreement([[4, 4], [4, 4, 4]]) == 1


many = st.lists(st.lists(st.integers(0, 4), max_size=5), max_size=12)


@given(many, st.randoms(use_true_random=False))
def test_neither_order_nor_names_matter(told: list[list[int]], stream: random.Random) -> None:
    renamed = [[f"step {label}" for label in stream.sample(labels, len(labels))] for labels in told]
    stream.shuffle(renamed)
    for of in (krippendorff_alpha, pairwise_agreement, unanimity):
        assert of(renamed) == pytest.approx(of(told), nan_ok=True)


@given(many)
def test_bounds(told: list[list[int]]) -> None:
    alpha, pairwise, all_agree = krippendorff_alpha(told), pairwise_agreement(told), unanimity(told)
    assert math.isnan(alpha) or alpha <= 1 + 1e-9
    assert math.isnan(pairwise) or 0 <= all_agree <= pairwise + 1e-9 <= 1 + 2e-9

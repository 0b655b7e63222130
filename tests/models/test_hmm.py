from itertools import product

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from stepline.models import hmm
from stepline.models.hmm import log_posteriors, log_sum, transitions


def by_enumeration(start: np.ndarray, matrix: np.ndarray, evidence: np.ndarray) -> np.ndarray:
    """The posteriors by the sum over all paths."""
    n_times, n_states = evidence.shape
    found = np.zeros((n_times, n_states))
    for path in product(range(n_states), repeat=n_times):
        weight = start[path[0]] * np.exp(evidence[0, path[0]])
        for t in range(1, n_times):
            weight *= matrix[path[t - 1], path[t]] * np.exp(evidence[t, path[t]])
        found[np.arange(n_times), path] += weight
    return found / found.sum(axis=1, keepdims=True)


def test_the_transitions_of_two_steps_are_those_by_hand() -> None:
    """Leave 0.3; jumps ahead weigh 1, 0.5, 0.25; back a tenth of it. Nothing leads before, nothing out of after."""
    expected = [
        [0.7, 0.3 * 1 / 1.75, 0.3 * 0.5 / 1.75, 0.3 * 0.25 / 1.75],
        [0, 0.7, 0.3 * 1 / 1.5, 0.3 * 0.5 / 1.5],
        [0, 0.3 * 0.1 / 1.1, 0.7, 0.3 * 1 / 1.1],
        [0, 0, 0, 1],
    ]
    np.testing.assert_allclose(transitions(2, leave=0.3, reach=0.5, back=0.1), expected, atol=1e-12)


@given(st.integers(1, 40), st.floats(0.001, 0.99), st.floats(0.01, 0.99), st.floats(0, 1))
def test_the_transitions_are_probabilities(n_steps: int, leave: float, reach: float, back: float) -> None:
    matrix = transitions(n_steps, leave=leave, reach=reach, back=back)
    assert (matrix >= 0).all()
    np.testing.assert_allclose(matrix.sum(axis=1), 1)


@given(
    arrays(float, (4, 4), elements=st.floats(-5, 5)),
    st.floats(0.05, 0.95),
    st.floats(0.05, 0.95),
    st.floats(0, 1),
)
def test_posteriors_are_those_of_all_paths(evidence: np.ndarray, leave: float, reach: float, back: float) -> None:
    start, matrix = np.array([0.7, 0.3, 0, 0]), transitions(2, leave=leave, reach=reach, back=back)
    posteriors = np.exp(log_posteriors(start, matrix, evidence))
    np.testing.assert_allclose(posteriors, by_enumeration(start, matrix, evidence), atol=1e-9)


@given(arrays(float, (6, 5), elements=st.integers(-10_000, 10_000)), arrays(float, (6, 1), elements=st.integers(-9, 9)))
def test_posteriors_sum_to_one_and_a_constant_of_a_time_says_nothing(
    evidence: np.ndarray, constant: np.ndarray
) -> None:
    matrix, start = transitions(3, leave=0.2, reach=0.5, back=0.1), np.eye(5)[0]
    posteriors = np.exp(log_posteriors(start, matrix, evidence))
    np.testing.assert_allclose(posteriors.sum(axis=1), 1)
    np.testing.assert_allclose(posteriors[0], start)
    np.testing.assert_allclose(np.exp(log_posteriors(start, matrix, evidence + constant)), posteriors, atol=1e-6)


def test_one_hopeless_time_rules_no_state_out() -> None:
    """After is far better for a while, and then only before is possible: the path stays before."""
    evidence = np.zeros((200, 4))
    evidence[:100, -1] = 20.0
    evidence[100:, 1:] = -1e6
    posteriors = np.exp(log_posteriors(np.eye(4)[0], transitions(2, leave=0.1, reach=0.5, back=0.1), evidence))
    np.testing.assert_allclose(posteriors, np.tile(np.eye(4)[0], (200, 1)), atol=1e-9)


def one_by_one(start: np.ndarray, matrix: np.ndarray, evidence: np.ndarray) -> np.ndarray:
    """The posteriors of one chain from sums of logarithms, time by time."""
    with np.errstate(divide="ignore"):
        first, steps = np.log(start), np.log(matrix)
    forward, backward = [first + evidence[0]], [np.zeros(len(start))]
    for seen in evidence[1:]:
        forward.append(log_sum(forward[-1][:, None] + steps, axis=0) + seen)
    for seen in evidence[:0:-1]:
        backward.append(log_sum(steps + (backward[-1] + seen), axis=1))
    joint = np.array(forward) + np.array(backward[::-1])
    return joint - log_sum(joint, axis=1)[:, None]


@example(1, 48, [(0.5, 0.5, 0.5, 0.1), (0.5, 0.5, 0.5, 50.0)], 1)  # products are 0, and NaN once they are scaled
@given(
    st.integers(1, 12),
    st.integers(1, 70),
    st.lists(st.tuples(*[st.floats(0.01, 0.9)] * 3, st.sampled_from([0.1, 2.0, 50.0, 1e5])), min_size=1, max_size=4),
    st.integers(0, 2**32 - 1),
)
def test_chains_at_once_are_those_of_one_after_the_other(
    n_steps: int, n_times: int, chains: list[tuple[float, float, float, float]], seed: int
) -> None:
    """Also where one of them is beyond what products of matrices can hold."""
    start, rng = np.eye(n_steps + 2)[0], np.random.default_rng(seed)
    matrices = np.array([transitions(n_steps, leave=leave, reach=reach, back=back) for leave, reach, back, _ in chains])
    scales = np.array([scale for *_, scale in chains])[:, None, None]
    evidence = scales * rng.standard_normal((len(chains), n_times, n_steps + 2))
    found = log_posteriors(start, matrices, evidence)
    for each, matrix, seen in zip(found, matrices, evidence, strict=True):
        np.testing.assert_allclose(each, one_by_one(start, matrix, seen), rtol=1e-9, atol=1e-9)


def test_a_chain_does_not_depend_on_the_others() -> None:
    rng = np.random.default_rng(0)
    matrices = np.array([transitions(9, leave=0.1, reach=0.2 * number, back=0.1) for number in range(1, 5)])
    evidence, start = rng.standard_normal((4, 100, 11)), np.eye(11)[0]
    together = log_posteriors(start, matrices, evidence)
    for number in range(4):
        assert np.array_equal(together[number], log_posteriors(start, matrices[number], evidence[number]))


def test_products_of_matrices_are_as_good_as_sums_of_logarithms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over thousands of times, in which some states become less likely than the least number."""
    evidence, start = 0.2 * np.random.default_rng(0).standard_normal((3000, 20)), np.eye(20)[0]
    matrix = transitions(18, leave=0.05, reach=0.05, back=0.005)
    monkeypatch.setattr(hmm, "_told_by_logarithms", None)
    found = log_posteriors(start, matrix, evidence)
    np.testing.assert_allclose(found, one_by_one(start, matrix, evidence), rtol=1e-10, atol=1e-10)


def test_the_sum_of_logarithms_neither_overflows_nor_underflows() -> None:
    values = np.array([[1000.0, 1000.0], [-1000.0, -np.inf], [-np.inf, -np.inf]])
    assert log_sum(values, axis=1).tolist() == pytest.approx([1000 + np.log(2), -1000, -np.inf])
    assert log_sum(values.T, axis=0).tolist() == log_sum(values, axis=1).tolist()

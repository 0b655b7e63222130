"""A hidden Markov chain of a procedure's steps: states 0 (before), 1..K (the steps), K+1 (after)."""

import numpy as np
from numpy.typing import NDArray

RESCALED = 16
"""Times after which products are scaled, so that they stay far from the least number."""
Array = NDArray[np.float64]


def transitions(n_steps: int, *, leave: float, reach: float, back: float) -> Array:
    """Return the (K+2, K+2) transition matrix; rows sum to 1.

    leave: the probability that a state is left, in (0, 1). reach: a jump over one step more is that much less likely,
    in (0, 1). back: how likely a jump back is beside one as far forward, from 0. Nothing leads back to before, and
    nothing out of after.
    """
    ahead = np.arange(n_steps + 2) - np.arange(n_steps + 2)[:, None]
    weights = np.where(ahead > 0, 1.0, back) * reach ** (np.abs(ahead) - 1.0)
    np.fill_diagonal(weights, 0.0)
    weights[:, 0] = 0.0
    weights[-1] = np.eye(n_steps + 2)[-1]
    matrix: Array = leave * weights / weights.sum(axis=1, keepdims=True)
    matrix += (1.0 - leave) * np.eye(n_steps + 2)
    return matrix


def log_posteriors(start: Array, matrices: Array, evidence: Array) -> Array:
    """Return the (..., T, S) logarithms of P(state at time t | all evidence), by the forward-backward algorithm.

    start: (S,) probabilities. matrices: (..., S, S), from row to column. evidence: (..., T, S) logarithms of each
    time's likelihood of the states, up to a constant of the time. -inf is what is impossible. Leading dimensions are
    chains that are computed at once; none changes another.
    """
    n_states = len(start)
    chains = matrices.reshape(-1, n_states, n_states)
    seen = np.moveaxis(evidence.reshape(len(chains), -1, n_states), 0, 1)
    first = np.ones((2 * len(chains), n_states))
    first[: len(chains)] = start
    both = first, np.concatenate([chains, chains.transpose(0, 2, 1)]), np.concatenate([seen, seen[::-1]], axis=1)
    told = _told(*both)
    if told is None:
        told = _told_by_logarithms(*both)
    joint = told[:, : len(chains)] + seen + told[::-1, len(chains) :]
    posteriors: Array = np.moveaxis(joint - log_sum(joint, axis=2)[..., None], 0, 1).reshape(evidence.shape)
    return posteriors


def _told(first: Array, matrices: Array, evidence: Array) -> Array | None:
    """Return the (T, N, S) logarithms of what the times before each tell of its states, up to a constant of the time.

    first: (N, S), not logarithms, as matrices: (N, S, S). evidence: (T, N, S). None where a term of a product may be
    below the least normal number.
    """
    told = np.empty_like(evidence)
    told[0] = first
    state = np.empty((len(first), 1, first.shape[1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.exp(evidence - evidence.max(axis=2, keepdims=True))
        for t in range(1, len(told)):
            np.multiply(told[t - 1], weights[t - 1], out=state[:, 0])
            if t % RESCALED == 0:
                state /= state.max(axis=2, keepdims=True)
            np.matmul(state, matrices, out=told[t, :, None])
        weights *= told
        of_first = weights[0].min(where=first > 0, initial=1.0)
        terms = np.minimum(of_first, weights[1:].min(initial=1.0))  # NaN, unlike min, where one is
        if not terms * matrices.min(where=matrices > 0, initial=1.0) >= np.finfo(np.float64).tiny:
            return None
        return np.log(told, out=told)


def _told_by_logarithms(first: Array, matrices: Array, evidence: Array) -> Array:
    """Return the same of any numbers, much slower."""
    told = np.empty_like(evidence)
    with np.errstate(divide="ignore"):
        told[0], steps = np.log(first), np.log(matrices)
    for t in range(1, len(told)):
        told[t] = log_sum((told[t - 1] + evidence[t - 1])[:, :, None] + steps, axis=1)
    return told


def log_sum(values: Array, *, axis: int) -> Array:
    """Return log(sum(exp(values))) over an axis; of nothing but -inf it is -inf."""
    best = np.maximum(values.max(axis=axis, keepdims=True), np.finfo(np.float64).min)
    with np.errstate(divide="ignore"):
        total: Array = np.log(np.exp(values - best).sum(axis=axis)) + best.squeeze(axis)
    return total

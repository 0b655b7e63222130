"""A hidden Markov chain of a procedure's steps: states 0 (before), 1..K (the steps), K+1 (after)."""

import numpy as np
from numpy.typing import NDArray

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


def log_posteriors(start: Array, matrix: Array, evidence: Array) -> Array:
    """Return the (T, S) logarithms of P(state at time t | all evidence), by the forward-backward algorithm.

    start: (S,) probabilities. matrix: (S, S), from row to column. evidence: (T, S) logarithms of each time's likelihood
    of the states, up to a constant of the time. -inf is what is impossible.
    """
    with np.errstate(divide="ignore"):
        first, steps = np.log(start), np.log(matrix)
    forward, backward = np.empty_like(evidence), np.zeros_like(evidence)
    forward[0] = first + evidence[0]
    for t in range(1, len(evidence)):
        forward[t] = log_sum(forward[t - 1][:, None] + steps, axis=0) + evidence[t]
    for t in range(len(evidence) - 1, 0, -1):
        backward[t - 1] = log_sum(steps + (backward[t] + evidence[t]), axis=1)
    joint = forward + backward
    posteriors: Array = joint - log_sum(joint, axis=1)[:, None]
    return posteriors


def log_sum(values: Array, *, axis: int) -> Array:
    """Return log(sum(exp(values))) over an axis; of nothing but -inf it is -inf."""
    best = np.maximum(values.max(axis=axis, keepdims=True), np.finfo(np.float64).min)
    with np.errstate(divide="ignore"):
        total: Array = np.log(np.exp(values - best).sum(axis=axis)) + best.squeeze(axis)
    return total

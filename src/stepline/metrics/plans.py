"""Success rate, accuracy and mean IoU of plans, in [0, 1] (Wu et al., Open-Event Procedure Planning, Sec. 3.3).

A plan is a row of T action ids, starting at 0. N plans are an (N, T) array or a list of rows.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

NO_ACTION = -1
"""The prediction of a method that named no action of the pool: wrong, and not part of the set of actions."""
GUESS = -2
"""The prediction of a uniform guess over the pool, scored with its exact expectation."""


class PlanScores(NamedTuple):
    """Scores of N windows, in [0, 1].

    sr: the fraction of windows with all actions correct. acc: the fraction of correct actions among all N * T.
    miou: the mean over windows of the IoU of the sets of predicted and true actions.
    """

    sr: float
    acc: float
    miou: float


class WindowScores(NamedTuple):
    """The scores of each window, (N,) in [0, 1]; expectations for windows with guesses."""

    sr: NDArray[np.float64]
    acc: NDArray[np.float64]
    iou: NDArray[np.float64]


def plan_scores(pred: ArrayLike, true: ArrayLike, *, batch_size: int | None = None) -> PlanScores:
    """Return the scores of (N, T) predicted and true action ids.

    batch_size: compute miou as in PDPP's code, from the IoU of all actions of batch_size consecutive windows, weighted
    by the number of windows (the last batch may be smaller). By default it is the IoU of each window, as in the paper.
    Raises ValueError as ``window_scores``, and for guesses, because the size of their pool is not known.
    """
    predicted, truth = _integers(pred, "pred"), _integers(true, "true")
    scores = window_scores(predicted, truth)
    iou, sizes = scores.iou, None
    if batch_size is not None:
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}, not at least 1")
        size, n = min(batch_size, len(truth)), len(truth)
        iou = _iou(_batches(predicted, size), _batches(truth, size))
        sizes = np.minimum(size, n - size * np.arange(len(iou)))
    return PlanScores(float(scores.sr.mean()), float(scores.acc.mean()), float(np.average(iou, weights=sizes)))


def window_scores(pred: ArrayLike, true: ArrayLike, *, n_actions: int | None = None) -> WindowScores:
    """Return the scores of each of N windows, given (N, T) predicted and true action ids.

    pred: ids, ``NO_ACTION`` or ``GUESS``. n_actions: the size of the pool, required for guesses, which are independent.
    Raises ValueError if an array is not (N, T) integers with N and T at least 1, if the shapes differ, or if an id is
    out of range.
    """
    predicted, truth = _integers(pred, "pred"), _integers(true, "true")
    if predicted.shape != truth.shape:
        raise ValueError(f"pred is {predicted.shape} and true {truth.shape}: they must have one shape")
    for name, ids, least in (("pred", predicted, GUESS), ("true", truth, 0)):
        if ids.min() < least or (n_actions is not None and ids.max() >= n_actions):
            most = "" if n_actions is None else f" and below n_actions, {n_actions}"
            raise ValueError(f"{name} has ids from {ids.min()} to {ids.max()}: they must be at least {least}{most}")
    right, guessed = predicted == truth, predicted == GUESS
    iou = _iou(predicted, truth)
    if not guessed.any():
        return WindowScores(right.all(axis=1).astype(np.float64), right.mean(axis=1), iou)
    if n_actions is None:
        raise ValueError("pred has guesses: give window_scores n_actions, the size of their pool")
    odds = np.where(guessed, 1 / n_actions, right)
    rows = guessed.any(axis=1)
    hits, misses, wanted = _sets(predicted[rows], truth[rows])
    patterns, which = np.unique([wanted, hits, misses, guessed[rows].sum(axis=1)], axis=1, return_inverse=True)
    iou[rows] = np.array([_expected_iou(n_actions, *pattern) for pattern in patterns.T.tolist()])[which.ravel()]
    return WindowScores(odds.prod(axis=1), odds.mean(axis=1), iou)


def _integers(ids: ArrayLike, name: str) -> NDArray[np.int64]:
    try:
        array = np.asarray(ids)
    except (RuntimeError, ValueError):
        raise ValueError(f"{name} is not rows of one length, or not readable as an array") from None
    if array.ndim != 2 or not array.size or array.dtype.kind not in "iu":
        raise ValueError(f"{name} is {array.shape} of {array.dtype}, not (N, T) integers with N and T at least 1")
    return array.astype(np.int64)


def _batches(ids: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Return the windows of each batch as one row, the last padded with ``NO_ACTION``."""
    missing = -len(ids) % size
    return np.pad(ids, ((0, missing), (0, 0)), constant_values=NO_ACTION).reshape(-1, size * ids.shape[1])


def _iou(pred: NDArray[np.int64], true: NDArray[np.int64]) -> NDArray[np.float64]:
    hits, misses, wanted = _sets(pred, true)
    return hits / (wanted + misses)


def _sets(pred: NDArray[np.int64], true: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    """Return, for each row, the numbers of distinct ids that are both predicted and true, only predicted, and true."""
    predicted, wanted, either = (_distinct(ids) for ids in (pred, true, np.hstack([pred, true])))
    return predicted + wanted - either, either - wanted, wanted


def _distinct(ids: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of distinct non-negative ids in each row."""
    ordered = np.sort(ids, axis=1)
    counts: NDArray[np.int64] = ((np.diff(ordered, axis=1, prepend=-1) > 0) & (ordered >= 0)).sum(axis=1)
    return counts


def _expected_iou(n_actions: int, wanted: int, hits: int, misses: int, guesses: int) -> float:
    """Return the expected IoU.

    wanted, hits, misses: the numbers of distinct true ids, correctly predicted ids and wrongly predicted ids. A guess
    adds a correct id, adds a wrong id, or repeats an id of the set.
    """
    right, wrong = np.arange(wanted + 1)[:, None], np.arange(misses + guesses + 1)
    chance = np.zeros((wanted + 1, misses + guesses + 1))
    chance[hits, misses] = 1
    for _ in range(guesses):
        to_right, to_wrong = chance * (wanted - right), chance * (n_actions - wanted - wrong)
        chance = chance * (right + wrong)
        chance[1:] += to_right[:-1]
        chance[:, 1:] += to_wrong[:, :-1]
        chance /= n_actions
    return float((chance * right / (wanted + wrong)).sum())

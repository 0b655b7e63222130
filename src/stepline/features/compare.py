"""Comparison of two banks of the same videos: cosine by time, and by how much one is late."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.errors import StoreError
from stepline.features.bank import Bank
from stepline.features.store import Rows

SEARCHED_S = 5.0
"""How far a lag is looked for, either way."""
LEAST_CHANGE = 1e-5
"""By how much the mean cosine must differ among lags: else nothing moves, and there is none to be found."""
NO_FRACTION = 0.05
"""Parts of a hop that are taken for none."""


@dataclass(frozen=True, kw_only=True)
class Timed:
    """Rows by video, row k of which stands for k hop_s."""

    name: str
    rows: Mapping[str, Rows]
    hop_s: float


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """How like each other two banks' rows of a video are, at the times of the one with the longer hop.

    mean, least, least_s: of their cosines, and the time of the least; NaN where they have no time in common.
    lag_s: the second shows at t what the first shows at t + lag_s, to a tenth of a hop; NaN where nothing in one
    changes, or too little is there. mean_at_lag: of the cosines with the lag undone.
    """

    video: str
    n_rows: int
    mean: float
    least: float
    least_s: float
    lag_s: float
    mean_at_lag: float


def compare(first: Timed, second: Timed) -> Iterator[Comparison]:
    """Compare two banks, video by video.

    Raises StoreError where they have no video in common, or differ in D.
    """
    common = sorted(video for video in first.rows if video in second.rows)
    if not common:
        raise StoreError(f"{first.name} and {second.name} have no video in common: see --prefix and --suffix")
    for bank in (first.rows, second.rows):
        if isinstance(bank, Bank):
            bank.fetch(common)
    for video in common:
        one, two = (np.asarray(bank.rows[video], np.float64) for bank in (first, second))
        if one.shape[1] != two.shape[1]:
            raise StoreError(
                f"{first.name} has {one.shape[1]} dimensions, {second.name} has {two.shape[1]}, in {video}"
            )
        if first.hop_s >= second.hop_s:
            yield _compare(video, (one, first.hop_s), (two, second.hop_s), -1)
        else:
            yield _compare(video, (two, second.hop_s), (one, first.hop_s), 1)


def _compare(video: str, coarse: tuple[Rows, float], fine: tuple[Rows, float], sign: int) -> Comparison:
    """Compare rows with rows of a hop that is not longer. sign: 1 where those are the first bank's, else -1."""
    rows, hop_s = coarse
    times_s = np.arange(len(rows)) * hop_s
    moved, there = _at(times_s, *fine)
    cosines = _cosines(rows[there], moved)
    late_s = _lag(coarse, fine)
    moved, still = _at(times_s + late_s, *fine)
    return Comparison(
        video=video,
        n_rows=len(cosines),
        mean=_mean(cosines),
        least=float(cosines.min()) if len(cosines) else nan,
        least_s=float(times_s[there][cosines.argmin()]) if len(cosines) else nan,
        lag_s=sign * late_s + 0.0,
        mean_at_lag=_mean(_cosines(rows[still], moved)),
    )


def _lag(coarse: tuple[Rows, float], fine: tuple[Rows, float]) -> float:
    """Return at how much later a time ``fine`` shows what ``coarse`` shows, in seconds, to a tenth of its hop.

    Among lags of whole hops that leave half of the rows, that where the mean cosine is highest; of equal ones that
    nearest to 0. From there, towards its better neighbour, as far as rows between the two are nearer.
    """
    (rows, hop_s), (fine_rows, fine_hop_s) = coarse, fine
    rows, fine_rows = _unit(rows), _unit(fine_rows)
    times_s = np.arange(len(rows)) * hop_s
    most = int(SEARCHED_S / fine_hop_s)
    found = np.full((2 * most + 3, len(rows)), nan)
    for line, step in zip(found, range(-most - 1, most + 2), strict=True):
        moved, there = _at(times_s + step * fine_hop_s, fine_rows, fine_hop_s)
        line[there] = _cosines(rows[there], moved)
    known = np.isfinite(found)
    enough = [place for place in range(1, 2 * most + 2) if 2 * known[place].sum() >= len(rows)]
    means = {place: round(float(found[place][known[place]].mean()), 7) for place in enough}
    if len(rows) < 3 or not means or max(means.values()) - min(means.values()) < LEAST_CHANGE:
        return nan
    best = max(sorted(means, key=lambda place: abs(place - most - 1)), key=means.__getitem__)
    common = known[best - 1 : best + 2].all(axis=0)
    side = 1 if found[best + 1, common].sum() > found[best - 1, common].sum() else -1
    whole = best - most - 1
    near, next_ = (_at(times_s[common] + step * fine_hop_s, fine_rows, fine_hop_s)[0] for step in (whole, whole + side))
    return float(round(whole + side * _fraction(rows[common], near, next_), 1) * fine_hop_s)


def _fraction(rows: Rows, near: Rows, following: Rows) -> float:
    """Return where between ``near`` (0) and ``following`` (1) lie points that are nearest to ``rows``.

    Points between two noisy ones have less noise than either, and so are nearer to any. Where the distance of ``rows``
    from ``near`` could be such noise, and what is left of the step without it ends at ``near``, it is 0.
    """
    off, off_following, step = (
        float(np.square(one - other).sum()) for one, other in ((rows, near), (rows, following), (near, following))
    )
    if step <= off or 0.5 + (off - off_following) / (2 * (step - off)) < NO_FRACTION:
        return 0.0
    return 0.5 + (off - off_following) / (2 * step)


def _unit(rows: Rows) -> Rows:
    """Return rows of length 1; those of 0 stay."""
    unit: Rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return unit


def _at(times_s: NDArray[Any], rows: Rows, hop_s: float) -> tuple[Rows, NDArray[np.bool_]]:
    """Return rows at the times that lie between the first and the last, linearly interpolated, and which these are."""
    place = np.round(times_s / hop_s, 6)
    there = (place >= 0) & (place <= len(rows) - 1)
    low = np.floor(place[there]).astype(np.int64)
    weight = (place[there] - low)[:, None]
    return rows[low] * (1 - weight) + rows[np.minimum(low + 1, len(rows) - 1)] * weight, there


def _cosines(rows: Rows, others: Rows) -> NDArray[np.float64]:
    """Return the cosine of each pair of rows: 1 of two that are 0, and 0 where one is."""
    norms, other_norms = (np.linalg.norm(each, axis=1) for each in (rows, others))
    size = norms * other_norms
    products = (rows * others).sum(axis=1) / np.where(size > 0, size, 1)
    return np.asarray(np.where(size > 0, products, norms == other_norms), np.float64)


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else nan

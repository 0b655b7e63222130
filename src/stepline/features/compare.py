"""Comparison of two banks of the same videos: cosine similarity over time, and the lag between them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.errors import StoreError
from stepline.features.bank import Bank
from stepline.features.unit import unit
from stepline.features.zarr_file import Rows

SEARCHED_S = 5.0
"""The largest lag that is searched, in both directions, in seconds."""
LEAST_CHANGE = 1e-5
"""The least difference in mean cosine between lags. With less, the features do not change and no lag can be found."""
NO_FRACTION = 0.05
"""Fractions of a hop below this value count as 0."""


@dataclass(frozen=True, kw_only=True)
class Timed:
    """Rows by video; row k is at the time k hop_s, or is that of a listed clip, as in ``Bank.clips``."""

    name: str
    rows: Mapping[str, Rows]
    hop_s: float
    clips: Mapping[str, Mapping[tuple[float, float], int]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The similarity of two banks' rows of a video, at the times of the bank with the longer hop or of common clips.

    mean, least, least_s: the mean cosine, the least cosine and its time; NaN if the banks have no time in common.
    lag_s: the second bank at t matches the first at t + lag_s, to a tenth of a hop; NaN if one of them does not change,
    has too few rows, or has listed clips. mean_at_lag: the mean cosine after correction of the lag.
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

    Raises StoreError if they have no video in common, differ in D, or if only one of them has listed clips.
    """
    if bool(first.clips) != bool(second.clips):
        listed, other = (first, second) if first.clips else (second, first)
        raise StoreError(f"{listed.name} has rows of spans, {other.name} has rows at regular times: pool its rows too")
    common = sorted(video for video in first.rows if video in second.rows)
    if not common:
        raise StoreError(f"{first.name} and {second.name} have no video in common: see --prefix and --suffix")
    for bank in (first.rows, second.rows):
        if isinstance(bank, Bank):
            bank.fetch(common)
    for video in common:
        one, two = (np.asarray(bank.rows[video], np.float64) for bank in (first, second))
        if one.shape[1] != two.shape[1]:
            raise StoreError(f"{video}: {first.name} has {one.shape[1]} dimensions, {second.name} has {two.shape[1]}")
        if first.clips:
            yield _compare_clips(video, (one, first.clips[video]), (two, second.clips[video]))
        elif first.hop_s >= second.hop_s:
            yield _compare(video, (one, first.hop_s), (two, second.hop_s), -1)
        else:
            yield _compare(video, (two, second.hop_s), (one, first.hop_s), 1)


def _compare_clips(
    video: str, first: tuple[Rows, Mapping[tuple[float, float], int]], second: tuple[Rows, Mapping[Any, int]]
) -> Comparison:
    (one, clips), (two, others) = first, second
    common = [clip for clip in clips if clip in others]
    cosines = _cosines(one[[clips[clip] for clip in common]], two[[others[clip] for clip in common]])
    return Comparison(
        video=video,
        n_rows=len(common),
        mean=_mean(cosines),
        least=float(cosines.min()) if common else nan,
        least_s=common[cosines.argmin()][0] if common else nan,
        lag_s=nan,
        mean_at_lag=nan,
    )


def _compare(video: str, coarse: tuple[Rows, float], fine: tuple[Rows, float], sign: int) -> Comparison:
    """Compare rows with rows of the same or a shorter hop. sign: 1 if the latter are the first bank's, otherwise -1."""
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
        least_s=float(times_s[cosines.argmin()]) if len(cosines) else nan,
        lag_s=sign * late_s + 0.0,
        mean_at_lag=_mean(_cosines(rows[still], moved)),
    )


def _lag(coarse: tuple[Rows, float], fine: tuple[Rows, float]) -> float:
    """Return how much later ``fine`` matches ``coarse``, in seconds, to a tenth of the hop of ``fine``.

    Among lags of whole hops that keep at least half of the rows, it takes the lag with the highest mean cosine; of
    equal ones, the lag nearest to 0. Then it refines the lag towards the better neighbour by interpolation.
    """
    (rows, hop_s), (fine_rows, fine_hop_s) = coarse, fine
    rows, fine_rows = unit(rows), unit(fine_rows)
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
    """Return the position between ``near`` (0) and ``following`` (1) that is nearest to ``rows``.

    A point between two noisy points has less noise than either, and so is nearer to any point. The result is 0 if the
    distance of ``rows`` from ``near`` can be explained by such noise.
    """
    off, off_following, step = (
        float(np.square(one - other).sum()) for one, other in ((rows, near), (rows, following), (near, following))
    )
    if step <= off or 0.5 + (off - off_following) / (2 * (step - off)) < NO_FRACTION:
        return 0.0
    return 0.5 + (off - off_following) / (2 * step)


def _at(times_s: NDArray[Any], rows: Rows, hop_s: float) -> tuple[Rows, NDArray[np.bool_]]:
    """Return linearly interpolated rows at the times between the first and last row, and a mask of these times."""
    place = np.round(times_s / hop_s, 6)
    there = (place >= 0) & (place <= len(rows) - 1)
    low = np.floor(place[there]).astype(np.int64)
    weight = (place[there] - low)[:, None]
    return rows[low] * (1 - weight) + rows[np.minimum(low + 1, len(rows) - 1)] * weight, there


def _cosines(rows: Rows, others: Rows) -> NDArray[np.float64]:
    """Return the cosine of each pair of rows: 1 if both are zeros, and 0 if one is."""
    norms, other_norms = (np.linalg.norm(each, axis=1) for each in (rows, others))
    size = norms * other_norms
    products = (rows * others).sum(axis=1) / np.where(size > 0, size, 1)
    return np.asarray(np.where(size > 0, products, norms == other_norms), np.float64)


def _mean(values: NDArray[np.float64]) -> float:
    return float(values.mean()) if len(values) else nan

"""TW-FINCH: clusters of rows near in feature and time (Sarfraz et al., CVPR 2021; Spacewalk-18, Appendix E.4)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.errors import ConfigError

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]

STEPS = 2.0**40
"""Cosine distances are rounded to multiples of 1/STEPS, so that ties do not depend on the order of summation."""


def tw_finch(features: NDArray[Any], n_segments: int, *, block: int = 1024) -> Labels:
    """Return the cluster of each of (n, D) rows in temporal order, (n,), numbered from 0 by first appearance.

    The distance of two clusters is the cosine distance of their mean features times the difference of their mean times;
    a zero feature has cosine distance 1. Each cluster is repeatedly joined to its nearest one, the first in a tie. From
    the coarsest partition with at least ``n_segments`` clusters, the nearest pair, the first in a tie, is joined until
    ``n_segments`` remain. If the first partition already has fewer clusters, it is returned, as in the published code.

    ``block`` rows are compared with ``block`` rows at once; this does not affect the result.
    Raises ConfigError if ``n_segments`` is below 1.
    """
    if n_segments < 1:
        raise ConfigError(f"{n_segments} segments are not allowed: give at least 1")
    labels = np.arange(len(features))
    clusters = _Clusters(features.astype(np.float32), labels + 1, np.ones_like(labels))
    while len(clusters.counts) > max(1, min(n_segments, len(features) - 1)):
        units = clusters.units()
        nearest, least = _nearest(units, clusters.times, block)
        group = _joined(nearest)
        if group.max() + 1 < n_segments and len(clusters.counts) < len(features):
            return _join_pairs(clusters, units, nearest, least, n_segments)[labels]
        labels, clusters = group[labels], clusters.merged(group)
    return labels


@dataclass(frozen=True)
class _Clusters:
    """m clusters ordered by first row. sums: (m, D), of features. ticks: (m,), sums of 1..n. counts: (m,), of rows."""

    sums: NDArray[Any]
    ticks: Labels
    counts: Labels

    @property
    def times(self) -> Floats:
        """The (m,) mean times in rows. The unit of time does not affect the result."""
        times: Floats = self.ticks / self.counts
        return times

    def units(self) -> Floats:
        """Return the (m, D) mean features, scaled to unit length."""
        units = self.sums.astype(np.float64)
        norms = np.sqrt(np.einsum("md,md->m", units, units))
        units /= np.where(norms == 0, 1, norms)[:, None]
        return units

    def merged(self, group: Labels) -> "_Clusters":
        """Return the clusters of clusters; group: (m,), numbered by first appearance."""
        order = np.argsort(group, kind="stable")
        first = np.flatnonzero(np.diff(group[order], prepend=-1))
        return _Clusters(
            np.add.reduceat(self.sums[order], first, dtype=np.float64),
            np.add.reduceat(self.ticks[order], first),
            np.add.reduceat(self.counts[order], first),
        )


def _distances(units: Floats, times: Floats, rows: Any, columns: Any) -> Floats:
    """Return the distances, times STEPS, of some clusters (rows) to others (columns)."""
    distances: Floats = units[rows] @ units[columns].T
    np.subtract(1, distances, out=distances)
    distances *= STEPS
    np.rint(distances, out=distances)
    np.maximum(distances, 0, out=distances)
    distances *= np.abs(times[rows, None] - times[columns])
    return distances


def _nearest(units: Floats, times: Floats, block: int) -> tuple[Labels, Floats]:
    """Return each cluster's nearest other cluster, the first in a tie, and the distance to it.

    A block of pairs is used for its rows and its columns. The order of blocks ensures that each cluster meets the
    others from first to last, so later clusters at an equal distance change nothing.
    """
    nearest, least = np.zeros(len(times), np.int64), np.full(len(times), np.inf)

    def meet(first: int, others: int, distances: Floats) -> None:
        closest = distances.argmin(axis=1)
        found = distances[np.arange(len(distances)), closest]
        whose = first + np.flatnonzero(found < least[first : first + block])
        least[whose], nearest[whose] = found[whose - first], others + closest[whose - first]

    for row in range(0, len(times), block):
        for column in range(row, len(times), block):
            distances = _distances(units, times, slice(row, row + block), slice(column, column + block))
            if row == column:
                np.fill_diagonal(distances, np.inf)
            else:
                meet(column, row, distances.T)
            meet(row, column, distances)
    return nearest, least


def _joined(nearest: Labels) -> Labels:
    """Return the connected component of each cluster, numbered by first appearance."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    size = len(nearest)
    graph = csr_array((np.ones(size), (np.arange(size), nearest)), shape=(size, size))
    return _numbered(connected_components(graph, directed=False)[1])


def _join_pairs(clusters: _Clusters, units: Floats, nearest: Labels, least: Floats, n_segments: int) -> Labels:
    """Join the nearest two clusters until ``n_segments`` remain; return the new cluster of each, (m,).

    Only the joined cluster, and clusters whose nearest was one of its parts, are compared with all others again. The
    arguments are overwritten.
    """
    sums, ticks, counts, times = clusters.sums, clusters.ticks, clusters.counts, clusters.times
    became = np.arange(len(times))
    gone = np.zeros(len(times), np.bool_)
    for _ in range(len(times) - n_segments):
        kept = int(least.argmin())
        lost = int(nearest[kept])
        became[became == lost] = kept
        gone[lost], least[lost] = True, np.inf
        for part in (sums, ticks, counts):
            part[kept] += part[lost]
        times[kept] = ticks[kept] / counts[kept]
        units[kept] = sums[kept] / (np.linalg.norm(sums[kept]) or 1)
        again = np.flatnonzero(~gone & ((nearest == kept) | (nearest == lost)))  # kept's nearest was lost
        distances = _distances(units, times, again, slice(None))
        distances[:, gone] = np.inf
        distances[np.arange(len(again)), again] = np.inf
        nearest[again], least[again] = distances.argmin(axis=1), distances.min(axis=1)
        to_kept = distances[np.searchsorted(again, kept)]
        closer = (to_kept < least) | ((to_kept == least) & (kept < nearest) & ~gone)
        nearest[closer], least[closer] = kept, to_kept[closer]
    return _numbered(became)


def _numbered(labels: NDArray[Any]) -> Labels:
    """Return the labels, renumbered by first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse]

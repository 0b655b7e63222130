"""Segments from scores per second: one-dimensional blobs found by Laplacian-of-Gaussian filters at several scales.

HT-Step's paper (2023, appendix B) states the filter, the 13 scales and their range; other details are our choice.
"""

from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import fft

from stepline.models.grounding import GroundedSegments

ROUNDED = 9
"""Decimals to which responses are rounded, so that rounding errors do not break ties."""


@dataclass(frozen=True, kw_only=True)
class BlobConfig:
    """The parameters of blob detection.

    smallest, largest, scales: the range and number of the Gaussians' standard deviations, in seconds, in geometric
    progression. border: the scores outside the video: ``zero``, or mirrored once (``mirror``). least: the minimum
    response of a blob. score: the score of a segment, its ``response`` or the mean ``confidence`` of its seconds. most:
    the number of blobs kept per step, those with the highest scores. overlap: drop a segment if its IoU with a better
    one of the same step is higher.
    """

    smallest: float = 1.0
    largest: float = 480.0
    scales: int = 13
    border: Literal["zero", "mirror"] = "zero"
    least: float = 0.01
    score: Literal["response", "confidence"] = "response"
    most: int = 100
    overlap: float = 0.5


def blobs(confidences: NDArray[Any], config: BlobConfig | None = None) -> GroundedSegments:
    """Return the segments found in (T, K) scores in [0, 1] of K steps, one row per second; ``step`` is the column.

    The response at scale s is -s^2 times the second derivative of the scores, constant over each second, smoothed with
    a Gaussian of standard deviation s. For a box of half-width w, it peaks at the centre and at s = w, with 0.484. A
    blob is a row t and scale s where no response of the up to 8 neighbours in time and scale is higher; its segment is
    [t + 0.5 - s, t + 0.5 + s], clipped to [0, T]. Among equal neighbours the blob is the one with the smaller scale,
    then the earlier row. Segments with equal scores are sorted by column, start and end.
    """
    config = config or BlobConfig()
    scores = confidences.T.astype(np.float64)
    deviations = np.geomspace(config.smallest, config.largest, config.scales)
    responses = np.round(response(scores, deviations, config.border), ROUNDED)
    scale, column, row = np.nonzero(_highest(responses) & (responses >= config.least))
    start_s = np.maximum(row + 0.5 - deviations[scale], 0.0)
    end_s = np.minimum(row + 0.5 + deviations[scale], len(confidences))
    score = responses[scale, column, row]
    if config.score == "confidence":
        score = (_until(scores, column, end_s) - _until(scores, column, start_s)) / (end_s - start_s)
    found = GroundedSegments(start_s, end_s, column, score)
    found = _taken(found, np.lexsort((end_s, start_s, -score, column)))
    rank = np.arange(len(row)) - np.searchsorted(found.step, found.step)
    few = rank < config.most
    found = _taken(found, few)
    found = _taken(found, _apart(found, rank[few], config.overlap))
    return _taken(found, np.lexsort((found.end_s, found.start_s, found.step, -found.score)))


def response(
    scores: NDArray[np.float64], deviations: NDArray[np.float64], border: Literal["zero", "mirror"] = "zero"
) -> NDArray[np.float64]:
    """Return the (scales, K, T) responses for (K, T) scores, at the centres of the seconds; see ``blobs``."""
    rows = scores.shape[1]
    beside = rows if border == "mirror" else 0
    padded = np.pad(scores, ((0, 0), (beside, beside)), mode="symmetric")
    reach = rows + beside
    edges = np.arange(-reach, reach) + 0.5
    scaled = edges / deviations[:, None]
    kernels = np.diff(scaled * np.exp(-0.5 * scaled**2), axis=1) / np.sqrt(2 * np.pi)
    size = fft.next_fast_len(2 * reach - 1, real=True)
    around = np.zeros((len(deviations), size))
    around[:, np.arange(1 - reach, reach)] = kernels
    found: NDArray[np.float64] = fft.irfft(fft.rfft(around)[:, None] * fft.rfft(padded, size), size)
    return found[..., beside : beside + rows]


def _highest(responses: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which of the (scales, K, T) responses are local maxima, the first among equal neighbours."""
    scales, _, rows = responses.shape
    around = np.pad(responses, ((1, 1), (0, 0), (1, 1)), constant_values=-np.inf)
    highest = np.ones(responses.shape, bool)
    for place in product(range(3), repeat=2):
        other = around[place[0] : place[0] + scales, :, place[1] : place[1] + rows]
        if place < (1, 1):
            highest &= responses > other
        elif place > (1, 1):
            highest &= responses >= other
    return highest


def _until(scores: NDArray[np.float64], column: NDArray[np.int64], time_s: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the integrals of the (K, T) scores of columns from time 0 to the given times."""
    second = np.minimum(time_s.astype(np.int64), scores.shape[1] - 1)
    sums = np.pad(scores.cumsum(axis=1), ((0, 0), (1, 0)))
    until: NDArray[np.float64] = sums[column, second] + (time_s - second) * scores[column, second]
    return until


def _apart(found: GroundedSegments, rank: NDArray[np.int64], overlap: float) -> NDArray[np.bool_]:
    """Return which segments are kept: best first, each unless it overlaps a kept segment of its step too much.

    rank: of each segment among those of its step; 0 is the best.
    """
    shape = (2, max(found.step, default=-1) + 1, max(rank, default=-1) + 1)
    ends = np.zeros(shape)
    ends[:, found.step, rank] = found.start_s, found.end_s
    kept = np.ones(shape[1:], bool)
    for best in range(shape[2] - 1):
        (start, end), (starts, stops) = ends[:, :, best, None], ends[:, :, best + 1 :]
        shared = np.minimum(end, stops) - np.maximum(start, starts)
        over = shared > overlap * (np.maximum(end, stops) - np.minimum(start, starts))
        kept[:, best + 1 :] &= ~(over & kept[:, best, None])
    return kept[found.step, rank]


def _taken(found: GroundedSegments, which: NDArray[Any]) -> GroundedSegments:
    return GroundedSegments(*(each[which] for each in found))

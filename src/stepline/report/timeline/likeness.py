"""The similarity of each moment of a video to earlier ones, by a backbone's features."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepline.features.bank import Bank

LAGS = (1, 2, 4, 8, 16, 32, 64)
"""Rows from a row back to the one that it is compared with."""
LONGEST = 14_400
"""Rows that are drawn; those of a longer video are means of several."""
ABSENT = 255
"""In place of a similarity, where one of the two rows is absent."""


@dataclass(frozen=True)
class Strip:
    """The cosine of each row and earlier ones.

    values: (len(LAGS), T), 0 stands for ``low``, 254 for ``high``; or ABSENT. hop_s: seconds from row to row.
    """

    hop_s: float
    low: float
    high: float
    values: NDArray[np.uint8]


def strip(bank: Bank, video: str) -> Strip | str:
    """Return a video's similarity to itself, or why there is none."""
    if video not in bank or not bank.length(video):
        return "there are no features of this video"
    if video in bank.clips:
        return "the features are of listed clips"
    blocks, hop_s = bank.blocks[video], bank.hop_s
    starts = [round(block.t0_s / hop_s) for block in blocks]
    rows = np.full((starts[-1] + blocks[-1].length, bank.dimension), np.nan, np.float32)
    offset = 0
    for start, block in zip(starts, blocks, strict=True):
        rows[start : start + block.length] = bank[video][offset : offset + block.length]
        offset += block.length
    pooled = -(-len(rows) // LONGEST)
    if pooled > 1:
        whole = rows[: len(rows) // pooled * pooled]
        rows = whole.reshape(-1, pooled, rows.shape[1]).mean(axis=1)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths > 0, lengths, 1)
    cosines = np.full((len(LAGS), len(rows)), np.nan)
    for place, lag in enumerate(LAGS):
        cosines[place, lag:] = np.einsum("td,td->t", rows[lag:], rows[:-lag]).round(4)
    there = ~np.isnan(cosines)
    if not there.any():
        return "the video is too short to be compared with itself"
    low, high = float(cosines[there].min()), float(cosines[there].max())
    scaled = np.where(there, 254 * (np.nan_to_num(cosines) - low) / max(high - low, 1e-9), ABSENT)
    return Strip(hop_s * pooled, low, high, np.rint(scaled).astype(np.uint8))

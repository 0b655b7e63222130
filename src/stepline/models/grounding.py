"""Inputs and outputs of article grounding heads: videos with the steps of an article, and segments of steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

Rows = NDArray[np.floating[Any]]


@dataclass(frozen=True, kw_only=True)
class GroundedVideo:
    """A video with the steps of its article, numbered from 0 to S - 1 over all articles.

    rows: (T, D) features; row i covers the seconds [i, i + 1). They are a view of a bank, read when a batch needs them.
    duration_s: in seconds. candidates: (K,) the steps of the article in its order. segments_s: (n, 2) annotated [start,
    end] in seconds. steps: (n,) the step of each segment.
    """

    rows: Rows
    duration_s: float
    candidates: NDArray[np.int64]
    segments_s: NDArray[np.float64]
    steps: NDArray[np.int64]


class GroundedSegments(NamedTuple):
    """N predicted segments of a video, best first, (N,) each: bounds in seconds, step index, score."""

    start_s: NDArray[np.float64]
    end_s: NDArray[np.float64]
    step: NDArray[np.int64]
    score: NDArray[np.float64]


def gather(rows: Sequence[Rows], length: int) -> "tuple[Tensor, Tensor]":
    """Return the rows of a batch, (B, length, D) float32, padded with 0, and their mask, (B, length).

    Raises ValueError if a video has more rows than ``length``.
    """
    import torch

    if max(map(len, rows)) > length:
        raise ValueError(f"{max(map(len, rows))} rows are more than {length}")
    found = np.zeros((len(rows), length, rows[0].shape[1]), np.float32)
    there = torch.arange(length) < torch.tensor([len(each) for each in rows])[:, None]
    for place, each in enumerate(rows):
        found[place, : len(each)] = each
    return torch.from_numpy(found), there

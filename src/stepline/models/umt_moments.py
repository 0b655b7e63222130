"""Conversion between segments in seconds and UMT's targets per row."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from stepline.models.umt_config import UmtConfig


class Targets(NamedTuple):
    """The targets of B videos with T rows, (B, T) each.

    center: a heat map around the centres of moments, 1 at each centre. window: the length of the moment with its centre
    in this row. offset: the distance of the centre from its row. Both are in rows. weight: 1 in rows with a centre, 0
    elsewhere, where window and offset are undefined. moments: the number of moments in the batch; several may have
    their centre in the same row.
    """

    center: Tensor
    window: Tensor
    offset: Tensor
    weight: Tensor
    moments: int

    def to(self, device: str) -> "Targets":
        """Return the targets on a device."""
        center, window, offset, weight = (each.to(device) for each in self[:4])
        return Targets(center, window, offset, weight, self.moments)


def targets(segments_s: Sequence[Tensor], length: int, config: UmtConfig) -> Targets:
    """Return the targets for (n, 2) segments of each video, [start, end] in seconds; length: T.

    A moment extends from its first row to its last, so a moment of n rows has the window n - 1, and one shorter than a
    row has a negative window. Its centre is the mean of both, at most T - 0.5. If several moments have their centre in
    the same row, the last one is used.
    """
    video = [number for number, of in enumerate(segments_s) for _ in of]
    spans_s = torch.cat([*segments_s]).float() - torch.tensor([0, config.unit])
    first, last = (spans_s / config.unit).unbind(1)
    centers, windows = ((first + last) / 2).clamp(max=length - 0.5), last - first
    rows, radius = centers.int(), (windows * config.radius).int()[:, None]
    away = (torch.arange(length) - rows[:, None]).abs()
    heat = torch.exp(-(away**2) / (2 * ((radius + 1) * config.sigma) ** 2)) * (away <= radius)
    center, window, offset, weight = torch.zeros(4, len(segments_s), length)
    for number, row, *of_row, hot in zip(video, rows.tolist(), windows, centers - rows, heat, strict=True):
        center[number] = torch.maximum(center[number], hot)
        window[number, row], offset[number, row] = of_row
        weight[number, row] = 1
    return Targets(center, window, offset, weight, len(video))


def moments(center: Tensor, window: Tensor, offset: Tensor, config: UmtConfig) -> Tensor:
    """Return (B, n, 3) moments (start and end in seconds, score) for (B, T) centre probabilities, windows and offsets.

    They come from the rows with the highest scores, best first; the first row wins a tie. Only ``kernel`` suppresses
    rows. A moment has at least one row and lies inside the T rows.
    """
    length = center.shape[1]
    highest = functional.max_pool1d(center, config.kernel, stride=1, padding=config.kernel // 2)
    score, row = (center * (highest == center)).sort(dim=1, descending=True, stable=True)
    score, row = score[:, : config.moments], row[:, : config.moments]
    middle = row + offset.gather(1, row).clamp(min=0)
    half = window.gather(1, row).clamp(min=0) / 2
    first, last = ((middle + side * half).clamp(0, length - 1) for side in (-1, 1))
    return torch.stack((first * config.unit, last * config.unit + config.unit, score), dim=2)

"""A network with almost no cost, the means of a clip's channels, to measure the path to the network."""

from collections.abc import Mapping
from pathlib import Path

import torch

from stepline.spec import ClipSpec


class Mean(torch.nn.Module):
    """(B, 3, T, H, W) -> (B, 3)."""

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Return the means."""
        return clips.mean((2, 3, 4))


def load(_spec: ClipSpec, _files: Mapping[str, Path]) -> Mean:
    """Return the network, which has no weights."""
    return Mean()

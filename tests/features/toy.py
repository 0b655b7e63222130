"""A small network on clips, and its spec: what extraction needs of a family, in a moment."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from stepline.spec import ClipSpec

SPEC = ClipSpec(
    name="toy",
    label="4x4fps",
    revision=1,
    fps=4,
    architecture="toy",
    weights=(),
    licence="Apache-2.0",
    num_frames=4,
    hop=4,
    steps=(("exact", 32, 32, "swscale_bicubic"),),
    mean=(0.4, 0.5, 0.6),
    std=(0.2, 0.25, 0.3),
    output="pooled",
    dimension=16,
)


class Toy(torch.nn.Module):
    """A convolution over space and time, and the mean of its squares: order in time and space matters."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.conv = torch.nn.Conv3d(3, dimension, (2, 5, 5), stride=(1, 3, 3))
        weights = torch.Generator().manual_seed(0)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.copy_(torch.randn(parameter.shape, generator=weights) / 5)

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return self.conv(clips).square().mean(dim=(2, 3, 4))


class Means(torch.nn.Module):
    """The mean of each colour."""

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        return clips.mean(dim=(2, 3, 4))


def load(spec: ClipSpec, files: Mapping[str, Path]) -> Any:
    return Toy(spec.dimension)

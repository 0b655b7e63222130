"""The published S3D: three-dimensional convolutions and pooling, with separate BatchNorm."""

from pathlib import Path
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool3d

from stepline.backbones.s3d import S3D, Gating

Kernel = tuple[int, int, int]


class Published(nn.Module):
    """(B, 3, T, H, W) -> (B, 1024), with the weights in a file."""

    def __init__(self, weights: Path) -> None:
        super().__init__()
        self.network = S3D("mixed_5c").eval()
        self.network.load_state_dict(torch.load(weights))

    def forward(self, clips: Tensor) -> Tensor:
        """Return the vectors."""
        with patch("stepline.backbones.s3d.maxima", maxima), patch.object(Gating, "forward", weighted):
            vectors: Tensor = self.network(clips.contiguous())
        return vectors


def maxima(x: Tensor, kernel: Kernel, stride: Kernel) -> Tensor:
    """Return the max-pooled windows."""
    padding = tuple(size // 2 if step == 1 else 0 for size, step in zip(kernel, stride, strict=True))
    return max_pool3d(x, kernel, stride, padding, ceil_mode=True)


def weighted(self: Gating, x: Tensor) -> Tensor:
    """Return ``x`` with its channels gated by their means."""
    return x * torch.sigmoid(self.fc(x.mean((2, 3, 4))))[:, :, None, None, None]

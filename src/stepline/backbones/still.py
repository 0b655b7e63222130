"""Adapters that apply a library's network to clips."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional


class Moving(nn.Module):
    """Applies a video network to clips."""

    def __init__(self, network: nn.Module, embed: Callable[[Tensor], Tensor], *, normalise: bool) -> None:
        """embed: the forward function of ``network``, of the result of ``view`` -> (B, D)."""
        super().__init__()
        self.network = network.eval().requires_grad_(False)
        self._embed = embed
        self._normalise = normalise

    def forward(self, clips: Tensor) -> Tensor:
        """Return the (B, D) vectors of normalised (B, 3, T, H, W) clips."""
        x = self._embed(self.view(clips))
        return functional.normalize(x, dim=1) if self._normalise else x

    @staticmethod
    def view(clips: Tensor) -> Tensor:
        """Return the frames, (B, T, 3, H, W)."""
        return clips.transpose(1, 2)


class Still(Moving):
    """Applies an image network to the first frame of each clip."""

    @staticmethod
    def view(clips: Tensor) -> Tensor:
        """Return the first frame, (B, 3, H, W)."""
        return clips[:, :, 0]

"""An adapter that applies an image network to clips."""

from collections.abc import Callable

from torch import Tensor, nn
from torch.nn import functional


class Still(nn.Module):
    """Applies an image network to the first frame of each clip."""

    def __init__(self, network: nn.Module, embed: Callable[[Tensor], Tensor], *, normalise: bool) -> None:
        """embed: the forward function of ``network``, (B, 3, H, W) -> (B, D)."""
        super().__init__()
        self.network = network.eval().requires_grad_(False)
        self._embed = embed
        self._normalise = normalise

    def forward(self, clips: Tensor) -> Tensor:
        """Return the (B, D) vectors of normalised (B, 3, T, H, W) clips."""
        x = self._embed(clips[:, :, 0])
        return functional.normalize(x, dim=1) if self._normalise else x

"""UMT (Liu et al., "UMT: Unified Multi-modal Transformers for Joint Video Moment Retrieval and Highlight Detection",
CVPR 2022), with the video encoder only, as in HT-Step (App. B).

It follows the release at github.com/TencentARC/UMT; see ``UmtConfig``. Random numbers come from torch's global
generator.
"""

from typing import NamedTuple

from torch import Tensor, nn
from torch.nn import functional

from stepline.models.umt_config import UmtConfig
from stepline.models.umt_layers import Decoder, QueryGenerator, VideoEncoder
from stepline.models.umt_moments import Targets

EPS = 1e-12
"""The value added to probabilities before the logarithm."""


class Queries(NamedTuple):
    """B videos of at most T rows, with a query of at most L words each.

    rows: (B, T, D). there: (B, T), False for padding. words: (B, L, E). said: (B, L), False for padding, with at least
    one word per query.
    """

    rows: Tensor
    there: Tensor
    words: Tensor
    said: Tensor


class Scores(NamedTuple):
    """The predictions for each row, (B, T) each.

    saliency, center: logits that the row answers the query, and that it is the centre of a moment. window, offset: in
    rows, for the moment with its centre in this row.
    """

    saliency: Tensor
    center: Tensor
    window: Tensor
    offset: Tensor


class Umt(nn.Module):
    """The network of a ``UmtConfig``, with its losses."""

    def __init__(self, config: UmtConfig) -> None:
        super().__init__()
        self.config = config
        self.video, self.query, self.decoder = VideoEncoder(config), QueryGenerator(config), Decoder(config)
        self.saliency, self.center, self.window, self.offset = (nn.Linear(config.hidden, 1) for _ in range(4))
        self.apply(_start)

    def forward(self, queries: Queries) -> Scores:
        """Return the predictions for each row."""
        return self.answer(self.video(queries.rows, queries.there), queries.there, queries.words, queries.said)

    def answer(self, memory: Tensor, there: Tensor, words: Tensor, said: Tensor) -> Scores:
        """Return the predictions for each encoded row, (B, T, H); the other arguments are as in ``Queries``."""
        decoded = self.decoder(self.query(memory, words, said), memory, self.seen(there))
        heads = self.saliency, self.center, self.window, self.offset
        return Scores(*(head(decoded)[..., 0] for head in heads))

    def seen(self, there: Tensor) -> Tensor | None:
        """Return the mask of the rows that the decoder attends to; None for all rows."""
        return there if self.config.padding == "masked" else None

    def losses(self, scores: Scores, there: Tensor, saliency: Tensor, learned: Targets) -> dict[str, Tensor]:
        """Return the four weighted losses by name; saliency: (B, T) labels in [0, 1], ignored in padding.

        The saliency loss is a mean over rows, the moment losses are means over moments.
        """
        config, real = self.config, there.to(scores.center)
        shares = functional.binary_cross_entropy_with_logits(scores.saliency, saliency, weight=real, reduction="sum")
        rows = real.sum() if config.padding == "masked" else real.numel()
        center = scores.center.sigmoid()
        found = -(center + EPS).log() * (1 - center) ** 2 * (learned.center == 1)
        other = -(1 - center + EPS).log() * center**2 * (1 - learned.center) ** 4
        window, offset = ((a - b).abs() for a, b in zip(scores[2:], learned[1:3], strict=True))
        return {
            "saliency": config.saliency_weight * shares / rows,
            "center": config.center_weight * ((found + other) * real).sum() / learned.moments,
            "window": config.window_weight * (window * learned.weight).sum() / learned.moments,
            "offset": config.offset_weight * (offset * learned.weight).sum() / learned.moments,
        }


def _start(module: nn.Module) -> None:
    """Initialise a linear layer."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_normal_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)

"""The configuration of UMT's network, training and inference; see ``stepline.models.umt``."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class UmtConfig:
    """The network; the defaults are the release's for QVHighlights with its video encoder only.

    feature_dim, text_dim: sizes of rows and words. hidden: a multiple of heads. decoder_layers: the video encoder has
    one layer. positions: the maximum length of a video, in rows. dropout: in attention, feed-forward layers and
    positions. video_dropout, text_dropout: of the input rows and words.
    unit: seconds per row; 2 in the release, 1 for HT-Step's features.
    padding: padding rows are ``attended`` by the decoder and included in the mean of the saliency loss, as in the
    release, so that the output for a video depends on its batch; or they are ``masked``.
    saliency: the salient rows in training: ``inside`` the segments of the step, or ``ones``, all rows, as in the
    release without labels.
    saliency_weight, center_weight, window_weight, offset_weight: of the losses. radius: of the heat map around a
    centre, as a fraction of the window. sigma: its standard deviation, as a fraction of radius + 1.
    kernel: odd; a centre must be the most likely of this number of rows. moments: the maximum number per video.
    """

    feature_dim: int
    text_dim: int
    hidden: int = 256
    heads: int = 8
    feedforward: int = 1024
    decoder_layers: int = 3
    positions: int = 5000
    dropout: float = 0.1
    video_dropout: float = 0.5
    text_dropout: float = 0.3
    unit: float = 1.0
    padding: Literal["attended", "masked"] = "attended"
    saliency: Literal["inside", "ones"] = "inside"
    saliency_weight: float = 3.0
    center_weight: float = 1.0
    window_weight: float = 0.1
    offset_weight: float = 1.0
    radius: float = 0.2
    sigma: float = 0.2
    kernel: int = 1
    moments: int = 100

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise ValueError(f"hidden is {self.hidden}, not a multiple of {self.heads} heads")
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel is {self.kernel}: it must be odd")

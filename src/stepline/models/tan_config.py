"""The configurations of the temporal alignment network, and of step grounding with its joint encoder."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, kw_only=True)
class EncoderConfig:
    """A joint encoder of video rows and texts; the defaults are those of the released TAN.

    feature_dim, text_dim: sizes of rows and texts. width: a multiple of heads. joint_layers: the number of blocks.
    positions: the length of the positional tables of the video and of texts.
    """

    feature_dim: int = 1024
    text_dim: int = 512
    width: int = 512
    heads: int = 8
    joint_layers: int = 6
    positions: int = 1024

    def __post_init__(self) -> None:
        if self.width % self.heads:
            raise ValueError(f"width is {self.width}, not a multiple of {self.heads} heads")


@dataclass(frozen=True, kw_only=True)
class TanConfig(EncoderConfig):
    """TAN; see ``stepline.models.tan``.

    video_layers: the number of blocks in the video encoder. video_positions: a learned table, or sines. text_positions:
    whether texts have positions in the joint encoder. alignability: whether a head predicts which texts can be aligned.
    """

    video_layers: int = 6
    video_positions: Literal["learned", "sine"] = "learned"
    text_positions: bool = False
    alignability: bool = False


@dataclass(frozen=True, kw_only=True)
class StepGroundingConfig(EncoderConfig):
    """MT+BCE; see ``stepline.models.step_grounding``.

    positions: 1200 by default, the longest video of HT-Step's paper in seconds; 1024 if training starts from a network
    that was trained on narrations.
    """

    positions: int = 1200

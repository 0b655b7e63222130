"""The configuration of HiREST's joint model and its inference; see ``stepline.models.hirest_joint``."""

from dataclasses import dataclass
from typing import Literal

CLS, SEP, PAD = 101, 102, 0
"""The start, end and padding ids of captions in bert-base-uncased's vocabulary."""


@dataclass(frozen=True, kw_only=True)
class JointConfig:
    """The network; the defaults are the release's.

    feature_dim, text_dim, asr_dim: sizes of frame, query and speech vectors. embed: the size of their sum. hidden: a
    multiple of heads. layers: of the encoder and of the decoder. positions: the maximum length of a video, in frames.
    vocabulary: the number of word ids. words: the maximum length of a caption including its start or end.
    word_positions: the length of the decoder's positional embedding. slots: the number of frames per step from which a
    caption is generated.
    fusion: how frames and query are combined: ``product``, as in the release, or ``sum``. The paper says "combining".
    caption_frames: the frames of a step with more frames than slots: the ``first`` ones, as in the release, or
    ``uniform``, evenly spaced, as in CLIP4Caption and the paper's "sample".
    padding: padding frames are ``attended``, as in the release, so that the output for a video depends on its batch; or
    ``masked``.
    audio: whether speech is an input.
    threshold: a step grows over frames with scores above this fraction of the highest. iterations: the maximum number
    of steps. gap: the minimum number of frames between two boundaries.
    """

    feature_dim: int = 1024
    text_dim: int = 1024
    asr_dim: int = 384
    embed: int = 512
    hidden: int = 768
    layers: int = 2
    heads: int = 12
    feedforward: int = 3072
    positions: int = 2048
    vocabulary: int = 30522
    words: int = 48
    word_positions: int = 512
    slots: int = 20
    dropout: float = 0.1
    fusion: Literal["product", "sum"] = "product"
    caption_frames: Literal["first", "uniform"] = "first"
    padding: Literal["attended", "masked"] = "attended"
    audio: bool = True
    threshold: float = 0.5
    iterations: int = 20
    gap: int = 5

    def __post_init__(self) -> None:
        if self.hidden % self.heads:
            raise ValueError(f"hidden is {self.hidden}, not a multiple of {self.heads} heads")

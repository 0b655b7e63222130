"""What the joint model of HiREST is made of and decoded with; see ``stepline.models.hirest_joint``."""

from dataclasses import dataclass
from typing import Literal

CLS, SEP, PAD = 101, 102, 0
"""Word ids that begin, end and fill up a caption, of bert-base-uncased."""


@dataclass(frozen=True, kw_only=True)
class JointConfig:
    """What a network is made of; by default the release's.

    feature_dim, text_dim, asr_dim: of frames, queries and speech. embed: of their sum. hidden: a multiple of heads.
    layers: of the encoder, and of the decoder. positions: the longest video, in frames. vocabulary: number of word ids.
    words: the longest caption with its beginning or its end. word_positions: rows of the decoder's position table.
    slots: frames of a step that a caption sees.
    fusion: how frames and query become one; ``product``, as released, or ``sum``. The paper says "combining".
    caption_frames: of a step with more frames than slots; the ``first`` ones, as released, or ``uniform``: evenly
    spaced ones, as CLIP4Caption has it and the paper's "sample".
    padding: frames that fill up the shorter videos of a batch are ``attended``, as released, so that what is said of a
    video depends on its batch; or ``masked``.
    audio: whether speech is seen.
    threshold: a step is grown over frames whose score is more than this part of the highest. iterations: the most
    steps that are grown. gap: the least number of frames between two boundaries.
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

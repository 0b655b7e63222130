"""What PDVC is made of, trained by and decoded with; see ``stepline.models.pdvc``."""

from dataclasses import dataclass
from typing import Literal

from stepline.models.deformable import Padding
from stepline.models.matching import Matcher

GROUPS = 32
"""Of the group normalisation of projected features."""


@dataclass(frozen=True, kw_only=True)
class PdvcConfig:
    """What a network is made of; by default the release's configuration for YouCook2 and 100 queries.

    feature_dim: D of the features. vocabulary: the greatest word id. Ids are those of the released vocabularies, from
    1, where ``<bos>``, ``<eos>`` (never used) and ``UNK`` have one like words; 0 begins, ends and fills up captions.
    hidden: a multiple of 32 and of heads.
    levels: level l has length / 2^l rows. points: places that a head samples per level.
    most_segments: the greatest number that the counter can say. words: the longest caption with its beginning and end,
    so two words more than are learned of one, and the most that are decoded.
    transformer_padding, caption_padding: what attention reads beyond the first and the last row; by default as the
    release does on a GPU, where its transformer and its caption head differ.
    matcher: how true segments find their queries. gamma, soft_weight: of ``soft_soda``, the smoothness and the weight
    of the smooth table's end in the loss of each layer. cost: of matching; ``pdvc``, 2 focal class - 4 GIoU as
    released, or ``iou``, -IoU as the paper has it. count_weights: of the counter's loss, see ``counter_loss``.
    proposals: ``learned`` from queries, or ``ground_truth``: the true segments are given, and captions and the counter
    alone are learned.
    sentence_weight, sentence_power: proposals are ranked by score + weight * log likelihood / words^power.
    """

    feature_dim: int
    vocabulary: int
    queries: int = 100
    hidden: int = 512
    feedforward: int = 512
    heads: int = 8
    encoder_layers: int = 2
    decoder_layers: int = 2
    levels: int = 4
    points: int = 4
    dropout: float = 0.1
    most_segments: int = 20
    words: int = 30
    caption_hidden: int = 512
    attention_hidden: int = 512
    caption_dropout: float = 0.5
    transformer_padding: Padding = "zeros"
    caption_padding: Padding = "border"
    matcher: Matcher = "hungarian"
    gamma: float = 0.01
    soft_weight: float = 1.0
    cost: Literal["pdvc", "iou"] = "pdvc"
    cost_score: float = 2.0
    cost_giou: float = 4.0
    focal_alpha: float = 0.25
    focal_gamma: float = 2.0
    score_weight: float = 2.0
    giou_weight: float = 4.0
    count_weight: float = 0.5
    count_weights: Literal["activitynet", "none"] = "activitynet"
    caption_weight: float = 2.0
    proposals: Literal["learned", "ground_truth"] = "learned"
    sentence_weight: float = 1.0
    sentence_power: float = 2.0

    def __post_init__(self) -> None:
        if self.hidden % GROUPS or self.hidden % self.heads:
            raise ValueError(f"hidden is {self.hidden}, not a multiple of {GROUPS} and of {self.heads} heads")

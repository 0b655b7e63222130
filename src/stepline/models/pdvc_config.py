"""The configuration of PDVC's network, training and inference; see ``stepline.models.pdvc``."""

from dataclasses import dataclass
from typing import Literal

from stepline.models.deformable import Padding
from stepline.models.matching import Matcher

GROUPS = 32
"""The number of groups in the normalisation of projected features."""


@dataclass(frozen=True, kw_only=True)
class PdvcConfig:
    """The network; the defaults are the release's configuration for YouCook2 with 100 queries.

    feature_dim: D of the features. vocabulary: the largest word id. Ids are those of the released vocabularies, from 1;
    ``<bos>``, ``<eos>`` (never used) and ``UNK`` have ids like words. 0 is the start, end and padding of captions.
    hidden: a multiple of 32 and of heads.
    levels: level l has length / 2^l rows. points: the number of locations that a head samples per level.
    most_segments: the largest number that the counter can predict. words: the maximum length of a caption including its
    start and end, so two words more than training uses; also the maximum length in inference.
    transformer_padding, caption_padding: the values that attention reads outside the rows. The defaults are those of
    the release on a GPU, where its transformer and its caption head differ.
    matcher: how true segments are matched to queries. gamma, soft_weight: for ``soft_soda``, the smoothness, and the
    weight of its loss in each layer. cost: of matching: ``pdvc``, 2 focal class - 4 GIoU as in the release, or ``iou``,
    -IoU as in the paper. count_weights: of the counter's loss, see ``counter_loss``.
    proposals: ``learned`` from queries, or ``ground_truth``: the true segments are given, and only captions and the
    counter are trained.
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

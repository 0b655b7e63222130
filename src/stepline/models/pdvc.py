"""PDVC (Wang et al., "End-to-End Dense Video Captioning with Parallel Decoding", ICCV 2021), as Batra et al. (arXiv
2209.15501) use it to segment and summarise instructional videos.

Features of a video, resized to one length, become levels of half the length each. A deformable transformer encodes
them; learned queries decode to segments with scores, their number, and a caption each. One video at a time, so there is
no padding. What is random comes from torch's global generator.
"""

import copy
import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from stepline.models.deformable import DecoderLayer, EncoderLayer, Levels, View
from stepline.models.matching import Matcher, temporal_order
from stepline.models.pdvc_captions import CaptionHead
from stepline.models.pdvc_loss import Predicted, as_boxes, as_segments, match, segment_losses

DURATION_S = 256
"""Durations are told apart up to here: the release encodes one as so many ones in a vector of this length."""
GROUPS = 32
"""Of the group normalisation of projected features."""
PRIOR = 0.01
"""A query's score at the start of training."""
EPSILON = 1e-5
"""How near to 0 or 1 a reference is before its logit is taken."""


@dataclass(frozen=True, kw_only=True)
class PdvcConfig:
    """What a network is made of; by default the release's configuration for YouCook2 and 100 queries.

    feature_dim: D of the features. vocabulary: the greatest word id. Ids are those of the released vocabularies, from
    1, where ``<bos>``, ``<eos>`` (never used) and ``UNK`` have one like words; 0 begins, ends and fills up captions.
    length: number of rows that features are resized to. hidden: a multiple of 32 and of heads.
    levels: level l has length / 2^l rows. points: places that a head samples per level.
    most_segments: the greatest number that the counter can say. words: the longest caption with its beginning and end,
    so two words more than are learned of one, and the most that are decoded.
    matcher: how true segments find their queries. gamma, soft_weight: of ``soft_soda``, the smoothness and the weight
    of the smooth table's end in the loss of each layer. cost: of matching; ``pdvc``, 2 focal class - 4 GIoU as
    released, or ``iou``, -IoU as the paper has it.
    proposals: ``learned`` from queries, or ``ground_truth``: the true segments are given and captions alone learned.
    sentence_weight, sentence_power: proposals are ranked by score + weight * log likelihood / words^power.
    """

    feature_dim: int
    vocabulary: int
    length: int = 200
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
    caption_weight: float = 2.0
    proposals: Literal["learned", "ground_truth"] = "learned"
    sentence_weight: float = 1.0
    sentence_power: float = 2.0

    def __post_init__(self) -> None:
        if self.hidden % GROUPS or self.hidden % self.heads:
            raise ValueError(f"hidden is {self.hidden}, not a multiple of {GROUPS} and of {self.heads} heads")


class Decoded(NamedTuple):
    """What is found in a video: (k, 2) segments in fractions of it, (k,) scores in 0..1, and captions' word ids."""

    segments: Tensor
    scores: Tensor
    captions: list[list[int]]


class Layer(NamedTuple):
    """A decoder layer's (Q, E) queries, from where they looked, and, of learned proposals, what it says."""

    queries: Tensor
    view: View
    predicted: Predicted | None


class Pdvc(nn.Module):
    """The network that ``PdvcConfig`` says, with its losses and its decoding.

    features are everywhere (length, D), float, resized by ``features.resize``; duration_s is the video's.
    """

    def __init__(self, config: PdvcConfig) -> None:
        super().__init__()
        self.config = config
        hidden, layer = config.hidden, (config.hidden, config.feedforward, config.heads, config.levels, config.points)
        self.project = nn.ModuleList([_projection(nn.Conv1d(config.feature_dim, hidden, 1))])
        for inputs in [config.feature_dim, *[hidden] * config.levels][: config.levels - 1]:
            self.project.append(_projection(nn.Conv1d(inputs, hidden, 3, stride=2, padding=1)))
        self.level = nn.Parameter(torch.randn(config.levels, hidden))
        self.duration = nn.Linear(DURATION_S, hidden // 2)
        self.encoder = nn.ModuleList(EncoderLayer(*layer, config.dropout) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(*layer, config.dropout) for _ in range(config.decoder_layers))
        self.captions = CaptionHead(
            vocabulary=config.vocabulary,
            hidden=hidden,
            lstm=config.caption_hidden,
            attention=config.attention_hidden,
            levels=config.levels,
            points=config.points,
            dropout=config.caption_dropout,
            words=config.words,
        )
        if config.proposals == "learned":
            self.queries = nn.Embedding(config.queries, 2 * hidden)
            self.reference = nn.Linear(hidden, 1)
            nn.init.xavier_uniform_(self.reference.weight)
            nn.init.zeros_(self.reference.bias)
            self._make_heads()
        else:
            given = nn.Linear(hidden, 2 * hidden)
            nn.init.xavier_uniform_(given.weight)
            self.given = nn.Sequential(given, nn.LayerNorm(2 * hidden))

    def _make_heads(self) -> None:
        """Make the heads of all decoder layers, which begin alike but for the length that the first one adds."""
        hidden, layers = self.config.hidden, self.config.decoder_layers
        score, count, last = (nn.Linear(hidden, outputs) for outputs in (1, self.config.most_segments + 1, 2))
        box = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), last)
        nn.init.constant_(score.bias, -math.log((1 - PRIOR) / PRIOR))
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)
        self.scores, self.counts, self.boxes = (
            nn.ModuleList(copy.deepcopy(head) for _ in range(layers)) for head in (score, count, box)
        )
        *_, bias = self.boxes[0].parameters()
        nn.init.constant_(bias[1:], -2)

    def losses(self, features: Tensor, segments: Tensor, captions: Tensor, *, duration_s: float) -> dict[str, Tensor]:
        """Return the weighted losses by name, each the sum over decoder layers.

        segments: (n, 2) true starts and ends in fractions of the video, in temporal order. captions: (n, W) word ids,
        0 after the last; of each the first ``words`` - 2 are learned. Names: see ``segment_losses``, and ``caption``.
        Raises ValueError where there are no segments, more than queries, or others than in temporal order.
        """
        config = self.config
        n, learned = len(segments), config.proposals == "learned"
        if not n or (learned and n > config.queries):
            raise ValueError(f"{n} segments cannot be learned by {config.queries} queries")
        if (temporal_order(segments) != torch.arange(n, device=segments.device)).any():
            raise ValueError("the segments are not sorted by start and end")
        rows, levels = self._encode(features, duration_s)
        total: dict[str, Tensor] = {}
        matched = []
        for queries, view, predicted in self._decode(rows, levels, None if learned else segments):
            chosen = torch.arange(n, device=segments.device)
            if predicted is not None:
                chosen, end = match(config, predicted, segments)
                losses = segment_losses(config, predicted, segments, chosen, end)
                total = {name: total.get(name, 0) + loss for name, loss in losses.items()}
            matched.append((queries[chosen], *view.of(chosen)))
        chosen_queries, *chosen_view = (torch.cat(parts) for parts in zip(*matched, strict=True))
        repeated = captions[:, : config.words - 2].repeat(len(matched), 1)
        caption = self.captions.loss(chosen_queries, View(*chosen_view), rows, levels, repeated)
        return total | {"caption": config.caption_weight * len(matched) * caption}

    def loss(self, features: Tensor, segments: Tensor, captions: Tensor, *, duration_s: float) -> Tensor:
        """Return the sum of ``losses``."""
        return torch.stack([*self.losses(features, segments, captions, duration_s=duration_s).values()]).sum()

    @torch.inference_mode()
    def decode(self, features: Tensor, *, duration_s: float, segments: Tensor | None = None) -> Decoded:
        """Return the segments of a video with their captions; the network must be in evaluation mode.

        With learned proposals, as many as the counter says, at least one, of those that rank first, in temporal order;
        each is cut to the video. With ground-truth proposals, the given (k, 2) ``segments`` as they are, with score 1.
        """
        config = self.config
        rows, levels = self._encode(features, duration_s)
        queries, view, predicted = self._decode(rows, levels, segments)[-1]
        words, likelihood = self.captions.decode(queries, view, rows, levels)
        if predicted is None:
            assert segments is not None
            return Decoded(segments, torch.ones_like(likelihood), _until_end(words))
        found, scores = as_segments(predicted.boxes).clamp(0, 1), predicted.logits.sigmoid()
        lengths = (words > 0).sum(dim=1)
        rank = scores + config.sentence_weight * likelihood / (lengths**config.sentence_power + EPSILON)
        best = rank.argsort(descending=True, stable=True)[: max(1, int(predicted.counts.argmax()))]
        best = best[temporal_order(found[best])]
        return Decoded(found[best], scores[best], _until_end(words[best]))

    def _encode(self, features: Tensor, duration_s: float) -> tuple[Tensor, Levels]:
        """Return the (S, E) encoded rows of all levels, and where these begin."""
        maps, below = [], features.T[None]
        for number, project in enumerate(self.project):
            maps.append(project(below)[0].T)
            if number:
                below = maps[-1].T[None]
        passed = (torch.arange(DURATION_S, device=features.device) < int(duration_s)).to(features)
        duration = self.duration(passed)
        places = [(torch.arange(len(each), device=features.device) + 0.5) / len(each) for each in maps]
        positions = [
            torch.cat((sinusoids(place, len(duration)), duration.expand(len(place), -1)), dim=1) + level
            for place, level in zip(places, self.level, strict=True)
        ]
        levels = Levels.of([len(each) for each in maps], features.device)
        rows, placed = torch.cat(maps), torch.cat(positions)
        view = levels.view(torch.cat(places)[:, None], self.config.points)
        for layer in self.encoder:
            rows = layer(rows, placed, view, levels)
        return rows, levels

    def _decode(self, rows: Tensor, levels: Levels, segments: Tensor | None) -> list[Layer]:
        """Return what each decoder layer has, from learned queries or from given segments."""
        learned = self.config.proposals == "learned"
        if learned != (segments is None):
            raise ValueError(f"{'' if learned else 'no '}segments are given with {self.config.proposals} proposals")
        if segments is None:
            placed, queries = self.queries.weight.chunk(2, dim=1)
            reference = self.reference(placed).sigmoid()
        else:
            reference = as_boxes(segments)
            encoded = sinusoids(reference, self.config.hidden // 2).flatten(1)
            placed, queries = self.given(encoded).chunk(2, dim=1)
        found = []
        for number, layer in enumerate(self.decoder):
            view = levels.view(reference, self.config.points)
            queries = layer(queries, placed, view, rows, levels)
            if segments is not None:
                found.append(Layer(queries, view, None))
                continue
            added = self.boxes[number](queries)
            centre = reference.logit(EPSILON)
            boxes = (added + nn.functional.pad(centre, (0, 2 - centre.shape[1]))).sigmoid()
            counts = self.counts[number](queries.amax(dim=0))
            predicted = Predicted(self.scores[number](queries)[:, 0], boxes, counts)
            found.append(Layer(queries, view, predicted))
            reference = boxes.detach()
        return found


def sinusoids(fractions: Tensor, width: int) -> Tensor:
    """Return (..., width) sines and cosines by turns of (...) fractions of a turn, from fast to slow."""
    column = torch.arange(width, device=fractions.device)
    angle = fractions[..., None] * 2 * math.pi / 10_000 ** ((column - column % 2) / width)
    return torch.where(column % 2 == 0, angle.sin(), angle.cos())


def _projection(convolution: nn.Conv1d) -> nn.Sequential:
    nn.init.xavier_uniform_(convolution.weight)
    assert convolution.bias is not None
    nn.init.zeros_(convolution.bias)
    return nn.Sequential(convolution, nn.GroupNorm(GROUPS, convolution.out_channels))


def _until_end(words: Tensor) -> list[list[int]]:
    return [[word for word in caption if word] for caption in words.tolist()]

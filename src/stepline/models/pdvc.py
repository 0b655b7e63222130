"""PDVC (Wang et al., "End-to-End Dense Video Captioning with Parallel Decoding", ICCV 2021), as used by Batra et al.
(arXiv 2209.15501) to segment and summarise instructional videos.

The features of a video are resized to one length and downsampled into levels, each half as long as the previous one. A
deformable transformer encodes them. Learned queries are decoded to segments with scores, the number of segments, and a
caption for each. Random numbers come from torch's global generator.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from stepline.models.deformable import DecoderLayer, EncoderLayer, Levels, View
from stepline.models.matching import temporal_order
from stepline.models.pdvc_captions import Asked, CaptionHead
from stepline.models.pdvc_config import GROUPS, PdvcConfig
from stepline.models.pdvc_loss import (
    Predicted,
    as_boxes,
    as_segments,
    counter_loss,
    match,
    segment_losses,
    soft_losses,
)

DURATION_S = 256
"""The maximum duration in seconds: the release encodes a duration as that number of ones in a vector of this length."""
PRIOR = 0.01
"""The score of a query at the start of training."""
EPSILON = 1e-5
"""References are clamped to this distance from 0 and 1 before their logit is computed."""


class Decoded(NamedTuple):
    """The output for a video: (k, 2) segments as fractions of it, (k,) scores in [0, 1], and word ids of captions."""

    segments: Tensor
    scores: Tensor
    captions: list[list[int]]


class Embedded(NamedTuple):
    """The input of the encoder: (B, S, E) rows, their positional encodings, their levels, and their positions.

    places: (B, S, 1), the position of each row as a fraction of the video.
    """

    rows: Tensor
    positions: Tensor
    levels: Levels
    places: Tensor


class Layer(NamedTuple):
    """A decoder layer: (B, Q, E) queries, their (B, Q, 1 or 2) references and view, and its predictions."""

    queries: Tensor
    reference: Tensor
    view: View
    predicted: Predicted


class Pdvc(nn.Module):
    """The network of a ``PdvcConfig``, with its losses and inference.

    features: (B, T, D), float, of B videos, resized by ``features.resize`` or padded with zeros to one length T.
    durations_s: (B,), of the videos. lengths: (B,), the numbers of rows without padding; None if there is no padding.
    Segments are (n, 2) starts and ends for each video, as fractions of it.
    """

    def __init__(self, config: PdvcConfig) -> None:
        super().__init__()
        self.config = config
        hidden, sizes = config.hidden, (config.feedforward, config.heads, config.levels, config.points)
        layer = hidden, *sizes, config.transformer_padding, config.dropout
        self.project = nn.ModuleList([_projection(nn.Conv1d(config.feature_dim, hidden, 1))])
        for inputs in [config.feature_dim, *[hidden] * config.levels][: config.levels - 1]:
            self.project.append(_projection(nn.Conv1d(inputs, hidden, 3, stride=2, padding=1)))
        self.level = nn.Parameter(torch.randn(config.levels, hidden))
        self.duration = nn.Linear(DURATION_S, hidden // 2)
        self.encoder = nn.ModuleList(EncoderLayer(*layer) for _ in range(config.encoder_layers))
        self.decoder = nn.ModuleList(DecoderLayer(*layer) for _ in range(config.decoder_layers))
        self.captions = CaptionHead(
            vocabulary=config.vocabulary,
            hidden=hidden,
            lstm=config.caption_hidden,
            attention=config.attention_hidden,
            levels=config.levels,
            points=config.points,
            padding=config.caption_padding,
            dropout=config.caption_dropout,
            words=config.words,
        )
        self.queries = nn.Embedding(config.queries, 2 * hidden)
        self.reference = nn.Linear(hidden, 1)
        given = nn.Linear(hidden, 2 * hidden)
        self.given = nn.Sequential(given, nn.LayerNorm(2 * hidden))
        for weight in (self.reference.weight, given.weight):
            nn.init.xavier_uniform_(weight)
        nn.init.zeros_(self.reference.bias)
        self._make_heads()

    def _make_heads(self) -> None:
        """Create the heads of all decoder layers, with equal initial values except for the first length offset."""
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

    def losses(
        self,
        features: Tensor,
        segments: Sequence[Tensor],
        captions: Sequence[Tensor],
        *,
        durations_s: Tensor,
        lengths: Tensor | None = None,
    ) -> list[dict[str, Tensor]]:
        """Return the unweighted losses of each decoder layer, by name.

        captions: (n, W) word ids for the segments of each video, padded with 0; the first ``words`` - 2 of each are
        trained on. Names: see ``segment_losses``; ``soft`` is SoftSODA's loss, ``count`` the counter's, ``caption`` the
        mean over all captions. With ground-truth proposals there are only the last two.
        Raises ValueError if a video has no segments or more than there are queries, or if an ordered matcher gets
        unsorted segments.
        """
        config = self.config
        learned = config.proposals == "learned"
        for each in segments:
            n = len(each)
            if not n or (learned and n > config.queries):
                raise ValueError(f"{n} segments cannot be learned by {config.queries} queries")
            in_order = (temporal_order(each) == torch.arange(n, device=each.device)).all()
            if config.matcher != "hungarian" and not in_order:
                raise ValueError("the segments are not sorted by start and end")
        rows, levels = self.encode(self.embed(features, durations_s, lengths))
        n_segments = torch.tensor([len(each) for each in segments], device=features.device)
        found: list[dict[str, Tensor]] = []
        asked, matches = [], []
        for layer in self.layers(rows, levels, None if learned else segments):
            matched = match(config, layer.predicted, segments)
            found.append(segment_losses(config, layer.predicted, segments, matched) if learned else {})
            found[-1]["count"] = counter_loss(config, layer.predicted.counts, n_segments)
            asked.append(self.asked(layer, matched.video, matched.query))
            matches.append(matched)
        if learned and config.matcher == "soft_soda":
            for losses, soft in zip(found, soft_losses(config, matches), strict=True):
                losses["soft"] = soft
        queries, views, videos = zip(*asked, strict=True)
        centres, units = zip(*views, strict=True)
        every = Asked(torch.cat(queries), View(torch.cat(centres), torch.cat(units)), torch.cat(videos))
        width = max(each.shape[1] for each in captions)
        ids = torch.cat([nn.functional.pad(each, (0, width - each.shape[1])) for each in captions])
        costs = self.captions.losses(every, rows, levels, ids[:, : config.words - 2].repeat(len(found), 1))
        return [
            losses | {"caption": of_layer.mean()}
            for losses, of_layer in zip(found, costs.chunk(len(found)), strict=True)
        ]

    def total(self, losses: Sequence[Mapping[str, Tensor]]) -> Tensor:
        """Return the training loss: the weighted sum of the result of ``losses``."""
        config = self.config
        weights = {
            "score": config.score_weight,
            "giou": config.giou_weight,
            "soft": config.soft_weight,
            "count": config.count_weight,
            "caption": config.caption_weight,
        }
        return torch.stack([weights[name] * loss for layer in losses for name, loss in layer.items()]).sum()

    @torch.inference_mode()
    def decode(
        self,
        features: Tensor,
        *,
        durations_s: Tensor,
        segments: Sequence[Tensor] | None = None,
        lengths: Tensor | None = None,
    ) -> list[Decoded]:
        """Return the segments of each video with their captions; the network must be in evaluation mode.

        With learned proposals, these are the top-ranked ones, as many as the counter predicts but at least one, in
        temporal order and clipped to the video. With ground-truth proposals, they are the given ``segments`` with score
        1.
        """
        config = self.config
        rows, levels = self.encode(self.embed(features, durations_s, lengths))
        *_, layer = self.layers(rows, levels, segments)
        every = [[number] * layer.queries.shape[1] for number in range(len(features))]
        video = torch.tensor(every, device=rows.device).flatten()
        query = torch.arange(layer.queries.shape[1], device=rows.device).repeat(len(features))
        said, likelihoods = self.captions.decode(self.asked(layer, video, query), rows, levels)
        decoded = []
        for number, (words, likelihood) in enumerate(
            zip(said.chunk(len(features)), likelihoods.chunk(len(features)), strict=True)
        ):
            if segments is not None:
                n = len(segments[number])
                decoded.append(Decoded(segments[number], likelihood.new_ones(n), _until_end(words[:n])))
                continue
            logits, boxes, counts = (each[number] for each in layer.predicted)
            found, scores = as_segments(boxes).clamp(0, 1), logits.sigmoid()
            n_words = (words > 0).sum(dim=1)
            rank = scores + config.sentence_weight * likelihood / (n_words**config.sentence_power + EPSILON)
            best = rank.argsort(descending=True, stable=True)[: max(1, int(counts.argmax()))]
            best = best[temporal_order(found[best])]
            decoded.append(Decoded(found[best], scores[best], _until_end(words[best])))
        return decoded

    def asked(self, layer: Layer, video: Tensor, query: Tensor) -> Asked:
        """Return the input of the caption head for (N,) queries of a layer, given by video and index."""
        view = View(layer.view.centre[video, query], layer.view.unit[video, query])
        return Asked(layer.queries[video, query], view, video)

    def embed(self, features: Tensor, durations_s: Tensor, lengths: Tensor | None = None) -> Embedded:
        """Return the rows of all levels, as input of the encoder."""
        maps, below = [], features.transpose(1, 2)
        for number, project in enumerate(self.project):
            maps.append(project(below))
            if number:
                below = maps[-1]
        sizes = [each.shape[2] for each in maps]
        there = torch.ones(features.shape[:2], device=features.device)
        if lengths is not None:
            there = (torch.arange(features.shape[1], device=features.device) < lengths[:, None]).to(features)
        filled = [nn.functional.interpolate(there[:, None], size)[:, 0] for size in sizes]
        passed = torch.arange(DURATION_S, device=features.device) < durations_s.to(torch.int64)[:, None]
        duration = self.duration(passed.to(features))[:, None]
        positions, places = [], []
        for level, each in zip(self.level, filled, strict=True):
            n = each.sum(dim=1, keepdim=True)
            sines = sinusoids((each.cumsum(dim=1) - 0.5) / n, duration.shape[2])
            positions.append(torch.cat((sines, duration.expand(-1, sines.shape[1], -1)), dim=2) + level)
            places.append((torch.arange(each.shape[1], device=features.device) + 0.5) / n)
        lengths_of = torch.tensor(sizes, device=features.device)
        levels = Levels(
            lengths_of,
            lengths_of.cumsum(0) - lengths_of,
            torch.stack([each.mean(dim=1) for each in filled], dim=1),
            None if lengths is None else torch.cat(filled, dim=1) == 0,
        )
        rows = torch.cat(maps, dim=2).transpose(1, 2)
        return Embedded(rows, torch.cat(positions, dim=1), levels, torch.cat(places, dim=1)[..., None])

    def encode(self, embedded: Embedded) -> tuple[Tensor, Levels]:
        """Return the (B, S, E) encoded rows of all levels, and the levels."""
        rows, positions, levels, places = embedded
        view = levels.view(places, self.config.points)
        for layer in self.encoder:
            rows = layer(rows, positions, view, levels)
        return rows, levels

    def layers(self, rows: Tensor, levels: Levels, segments: Sequence[Tensor] | None = None) -> list[Layer]:
        """Return the decoder layers, from learned queries or from given segments."""
        learned = self.config.proposals == "learned"
        if learned != (segments is None):
            raise ValueError(f"{'' if learned else 'no '}segments are given with {self.config.proposals} proposals")
        absent = None
        if segments is None:
            placed, queries = (each.expand(len(rows), -1, -1) for each in self.queries.weight.chunk(2, dim=1))
            reference = self.reference(placed).sigmoid()
        else:
            reference = nn.utils.rnn.pad_sequence([as_boxes(each) for each in segments], batch_first=True)
            n = torch.tensor([len(each) for each in segments], device=rows.device)
            absent = torch.arange(reference.shape[1], device=rows.device) >= n[:, None]
            encoded = sinusoids(reference.clamp(EPSILON, 1 - EPSILON), self.config.hidden // 2).flatten(2)
            placed, queries = self.given(encoded).chunk(2, dim=2)
        found = []
        for number, layer in enumerate(self.decoder):
            view = levels.view(reference, self.config.points)
            queries = layer(queries, placed, view, rows, levels, absent)
            boxes = reference
            if learned:
                centre = reference.logit(EPSILON)
                boxes = (self.boxes[number](queries) + nn.functional.pad(centre, (0, 2 - centre.shape[2]))).sigmoid()
            there = queries if absent is None else queries.masked_fill(absent[..., None], -torch.inf)
            predicted = Predicted(self.scores[number](queries)[..., 0], boxes, self.counts[number](there.amax(dim=1)))
            found.append(Layer(queries, reference, view, predicted))
            reference = boxes.detach()
        return found


def sinusoids(fractions: Tensor, width: int) -> Tensor:
    """Return (..., width) alternating sines and cosines of (...) fractions of a turn, from high to low frequency."""
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

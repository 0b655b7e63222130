"""ActionFormer (Zhang et al., "ActionFormer: Localizing Moments of Actions with Transformers", ECCV 2022), and
ActionFormer-T, which uses texts as classes, as in HT-Step (Mavroudi et al., NeurIPS 2023, appendix B).

A transformer computes a pyramid from the rows of a video; each level has half as many rows as the previous one. Every
row of a level is a point, which predicts a logit for each step and the distances to the start and end of the step's
segment. Times are in rows: row i covers the seconds [i, i + 1) and is at position i, so the time t in seconds is at
position t - 0.5. Random numbers come from torch's global generator.
"""

import math
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from stepline.models.actionformer_config import ActionFormerConfig, Decoding
from stepline.models.actionformer_layers import Block, Conv, Norm
from stepline.models.nms import suppressed, voted

CENTRE = 0.5
"""The position of a row within its second, in seconds."""


class Level(NamedTuple):
    """A level of the pyramid: (B, C, T) rows, and the mask ``there``, (B, 1, T): 1 for rows of a video, else 0."""

    rows: Tensor
    there: Tensor


class Said(NamedTuple):
    """The predictions of the P points of all levels, fine to coarse, for B videos.

    logits: (B, P, S), of the steps. offsets: (B, P, 2), distances to the start and end of a segment, at least 0, in
    strides of the level. there: (B, P), False for padding. sizes: the number of points of each level.
    """

    logits: Tensor
    offsets: Tensor
    there: Tensor
    sizes: list[int]


class Found(NamedTuple):
    """Segments of a video: (N, 2) start and end in rows or seconds, (N,) scores, and (N,) indices of steps."""

    segments: NDArray[np.floating[Any]]
    scores: NDArray[np.float32]
    steps: NDArray[np.int64]


class ActionFormer(nn.Module):
    """The network."""

    def __init__(self, config: ActionFormerConfig) -> None:
        super().__init__()
        self.config = config
        width, (convolutions, blocks, levels) = config.embed, config.arch
        inputs = [config.feature_dim, *[width] * (convolutions - 1)]
        self.embedding = nn.ModuleList(Conv(each, width, config.kernel, bias=False) for each in inputs)
        self.embedding_norms = nn.ModuleList(Norm(width) for _ in inputs)
        strides = [1] * blocks + [2] * levels
        windows = [config.windows[0]] * blocks + [*config.windows[1:]]
        self.blocks = nn.ModuleList(
            Block(width, config.heads, window, stride, config.dropout, config.droppath, relative=config.relative)
            for window, stride in zip(windows, strides, strict=True)
        )
        self.pyramid = Pyramid(config)
        self.class_head = Head(config, config.classes or config.text_embed)
        self.offset_head = Head(config, 2)
        self.scales = nn.Parameter(torch.ones(config.levels))
        prior = -math.log((1 - config.prior) / config.prior)
        if config.text_dim is None:
            nn.init.constant_(self.class_head.output.get_parameter("bias"), prior)
        else:
            self.texts = Texts(config.text_dim, config.text_embed, prior)

    def levels(self, features: Tensor, there: Tensor) -> list[Level]:
        """Return the levels for (B, T, D) features, before the pyramid's norms. there: (B, T), False for padding.

        T must be a multiple of the last level's stride. As in the release, it is ``max_length`` in training and
        ``config.padded`` of the video's length in inference.
        """
        rows, mask = features.transpose(1, 2), there[:, None].to(features.dtype)
        for convolution, norm in zip(self.embedding, self.embedding_norms, strict=True):
            rows = functional.relu(norm(convolution(rows, mask)))
        if self.config.absolute:
            rows = rows + self._positions(rows.shape[2]).to(rows) * mask
        levels = []
        for number, block in enumerate(self.blocks):
            rows, mask = block(rows, mask)
            if number + 1 >= self.config.arch[1]:
                levels.append(Level(rows, mask))
        return levels

    def forward(
        self, features: Tensor, there: Tensor, texts: Tensor | None = None, steps: Tensor | None = None
    ) -> Said:
        """Return the predictions of the points for videos; see ``levels``.

        texts: (S, E), the vectors of all steps, for ActionFormer-T. steps: the indices of the steps to predict; None
        for all.
        """
        levels = self.pyramid(self.levels(features, there))
        logits = self._logits([self.class_head.hidden(level) for level in levels], texts, steps)
        offsets = [
            functional.relu(scale * self.offset_head(level)) for scale, level in zip(self.scales, levels, strict=True)
        ]
        return Said(
            logits,
            torch.cat(offsets, dim=2).transpose(1, 2),
            torch.cat([level.there for level in levels], dim=2)[:, 0] > 0,
            [level.rows.shape[2] for level in levels],
        )

    def _logits(self, levels: list[Level], texts: Tensor | None, steps: Tensor | None) -> Tensor:
        if self.config.text_dim is None:
            asked, output = slice(None) if steps is None else steps, self.class_head.output
            weight, bias = output.weight[asked], None if output.bias is None else output.bias[asked]
            padding = weight.shape[2] // 2
            said = [functional.conv1d(level.rows, weight, bias, padding=padding) * level.there for level in levels]
            return torch.cat(said, dim=2).transpose(1, 2)
        if texts is None:
            raise ValueError("ActionFormer-T needs the vectors of the steps")
        points = torch.cat([self.class_head.output(*level) for level in levels], dim=2).transpose(1, 2)
        there = torch.cat([level.there for level in levels], dim=2).transpose(1, 2)
        logits: Tensor = self.texts(points, texts if steps is None else texts[steps]) * there
        return logits

    def _positions(self, length: int) -> Tensor:
        """Return (1, E, T) positional embeddings; for a video longer than ``max_length`` they are interpolated."""
        positions = sinusoids(self.config.max_length, self.config.embed)
        if length > self.config.max_length:
            return functional.interpolate(positions, length, mode="linear", align_corners=False)
        return positions[:, :, :length]


class Pyramid(nn.Module):
    """The norms of the levels, and the fusion of an FPN, before the heads."""

    def __init__(self, config: ActionFormerConfig) -> None:
        super().__init__()
        width = config.pyramid_dim
        self.lateral, self.depthwise = nn.ModuleList(), nn.ModuleList()
        if config.pyramid == "fpn":
            self.lateral.extend(Conv(config.embed, width, bias=False) for _ in range(config.levels))
            self.depthwise.extend(Conv(width, width, 3, groups=width, bias=False) for _ in range(config.levels))
        self.norms = nn.ModuleList(Norm(width) for _ in range(config.levels))

    def forward(self, levels: list[Level]) -> list[Level]:
        """Return the same number of levels."""
        rows = [level.rows for level in levels]
        if self.lateral:
            rows = [convolution(*level) for convolution, level in zip(self.lateral, levels, strict=True)]
            for number in range(len(rows) - 1, 0, -1):
                rows[number - 1] = rows[number - 1] + rows[number].repeat_interleave(2, dim=2)
            rows = [each(row, level.there) for each, row, level in zip(self.depthwise, rows, levels, strict=True)]
        return [Level(norm(row), level.there) for norm, row, level in zip(self.norms, rows, levels, strict=True)]


class Head(nn.Module):
    """Convolutions that all levels share."""

    def __init__(self, config: ActionFormerConfig, outputs: int) -> None:
        super().__init__()
        inputs = [config.pyramid_dim, *[config.head_dim] * (config.head_layers - 2)][: config.head_layers - 1]
        self.layers = nn.ModuleList(Conv(each, config.head_dim, config.head_kernel, bias=False) for each in inputs)
        self.norms = nn.ModuleList(Norm(config.head_dim) for _ in inputs)
        self.output = Conv(config.head_dim, outputs, config.head_kernel)

    def hidden(self, level: Level) -> Level:
        """Return the input of the last convolution."""
        rows = level.rows
        for convolution, norm in zip(self.layers, self.norms, strict=True):
            rows = functional.relu(norm(convolution(rows, level.there)))
        return Level(rows, level.there)

    def forward(self, level: Level) -> Tensor:
        """Return the outputs, (B, outputs, T)."""
        said: Tensor = self.output(*self.hidden(level))
        return said


class Texts(nn.Module):
    """Logits of points and texts: their dot product in a common space, with a learned scale and shift.

    The paper names two layers of width 512, ReLU and a norm. Here the norm comes last, so that all texts have the same
    length. The scale starts at 1 / sqrt(width), the shift at the logit of ``prior``.
    """

    def __init__(self, text_dim: int, width: int, prior: float) -> None:
        super().__init__()
        self.inner, self.outer, self.norm = nn.Linear(text_dim, width), nn.Linear(width, width), nn.LayerNorm(width)
        self.scale = nn.Parameter(torch.tensor(width**-0.5))
        self.bias = nn.Parameter(torch.tensor(prior))

    def forward(self, points: Tensor, texts: Tensor) -> Tensor:
        """Return the (B, P, S) logits of (B, P, W) points and (S, E) texts."""
        embedded = self.norm(self.outer(functional.relu(self.inner(texts))))
        logits: Tensor = points @ (self.scale * embedded).T + self.bias
        return logits


@cache
def sinusoids(length: int, width: int) -> Tensor:
    """Return (1, width, length) alternating sines and cosines, divided by sqrt(width)."""
    channel = torch.arange(width, dtype=torch.float64)[:, None]
    angle = torch.arange(length) / 10000 ** (2 * (channel // 2) / width)
    table: Tensor = torch.where(channel % 2 == 0, angle.sin(), angle.cos()).float() / width**0.5
    return table.unsqueeze(0)


def points(config: ActionFormerConfig, length: int) -> Tensor:
    """Return the (P, 4) points of all levels for ``length`` rows: position, minimum and maximum distance, stride."""
    made = []
    for stride, (least, greatest) in zip(config.strides, config.ranges, strict=True):
        place = torch.arange(0, length, stride, dtype=torch.float32)
        made.append(torch.stack([place, *(torch.full_like(place, each) for each in (least, greatest, stride))], dim=1))
    return torch.cat(made)


def decoded(said: Said, config: ActionFormerConfig, decoding: Decoding) -> Found:
    """Return the segments of one video, in rows, before suppression: level by level, sorted by score within a level.

    Equal scores are ordered by point, then by step.
    """
    length, n = said.sizes[0], said.logits.shape[2]
    scores = said.logits[0].sigmoid() * said.there[0][:, None]
    place, _, _, stride = points(config, length).to(scores.device).unbind(1)
    chosen = []
    for first, of_level in zip(np.cumsum([0, *said.sizes]), torch.split(scores, said.sizes), strict=False):
        flat = of_level.flatten()
        above = (flat > decoding.least_score).nonzero()[:, 0]
        if len(above) > decoding.most_points:
            least = flat[above].topk(decoding.most_points).values[-1]
            above = above[flat[above] >= least]
        best = above[flat[above].argsort(descending=True, stable=True)][: decoding.most_points]
        chosen.append(int(first) * n + best)
    picked = torch.cat(chosen)
    point, step = picked // n, picked % n
    start = place[point] - said.offsets[0, point, 0] * stride[point]
    end = place[point] + said.offsets[0, point, 1] * stride[point]
    long = end - start > decoding.least_rows
    found = torch.stack((start, end), dim=1)[long], scores.flatten()[picked][long], step[long]
    return Found(*(each.cpu().numpy() for each in found))


def chosen(found: Found, decoding: Decoding) -> Found:
    """Return the segments that remain after suppression, best first; with ``nms`` none, all segments unchanged."""
    if decoding.nms == "none":
        return found
    kept, scores = suppressed(
        found.segments,
        found.scores,
        found.steps if decoding.per_step else np.zeros_like(found.steps),
        method=decoding.nms,
        iou=decoding.iou,
        sigma=decoding.sigma,
        min_score=decoding.min_score,
        most=decoding.most,
    )
    segments = found.segments[kept]
    if not decoding.per_step and decoding.voting > 0:
        segments = voted(segments, found.segments, found.scores, decoding.voting)
    return Found(segments, scores, found.steps[kept])


def in_rows(time_s: NDArray[np.float64], row_s: float = 1.0, centre: float = CENTRE) -> NDArray[np.float64]:
    """Return times in rows of ``row_s`` seconds. centre: the position of a row within it, as a fraction."""
    return time_s / row_s - centre


def in_seconds(
    segments: NDArray[np.floating[Any]], duration_s: float, row_s: float = 1.0, centre: float = CENTRE
) -> NDArray[np.float64]:
    """Return segments in seconds, clipped to the video; see ``in_rows``."""
    return np.clip((segments.astype(np.float64) + centre) * row_s, 0, duration_s)

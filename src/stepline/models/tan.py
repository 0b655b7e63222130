"""TAN, the temporal alignment network (Han et al., 2022), which aligns sentences with the seconds of a video.

Parameters are named as in the published checkpoints of github.com/TengdaHan/TemporalAlignNet.
"""

import math
from collections import OrderedDict
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepline.models.tan_config import EncoderConfig, TanConfig

DEVIATION = 0.01
"""The standard deviation of initial projections and tables."""
TEMPERATURE = 0.07
"""The temperature of cosines in losses."""


class QuickGelu(nn.Module):
    """CLIP's approximation of GELU."""

    def forward(self, x: Tensor) -> Tensor:
        """Return a tensor of the same shape."""
        return x * torch.sigmoid(1.702 * x)


class Attention(nn.Module):
    """Attention of rows to each other, with ``nn.MultiheadAttention``'s parameters."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)

    def forward(self, rows: Tensor, padding: Tensor | None) -> Tensor:
        """Return the output for (B, X, C) rows, of the same shape; padding: (B, X), True for masked rows."""
        split = functional.linear(rows, self.in_proj_weight, self.in_proj_bias).view(*rows.shape[:2], 3, self.heads, -1)
        queries, keys, values = split.permute(2, 0, 3, 1, 4).unbind(0)
        mask = None if padding is None else ~padding[:, None, None]
        found = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=mask)
        result: Tensor = self.out_proj(found.transpose(1, 2).flatten(2))
        return result


class Block(nn.Module):
    """A pre-norm transformer block: attention and two linear layers, with residual connections."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        width, added = config.width, config.width**-0.5 * (2 * config.joint_layers) ** -0.5
        self.attn = Attention(width, config.heads)
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        inner, outer = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.mlp = nn.Sequential(OrderedDict(c_fc=inner, gelu=QuickGelu(), c_proj=outer))
        nn.init.normal_(self.attn.in_proj_weight, std=width**-0.5)
        nn.init.normal_(self.attn.out_proj.weight, std=added)
        nn.init.zeros_(self.attn.out_proj.bias)
        nn.init.normal_(inner.weight, std=(2 * width) ** -0.5)
        nn.init.normal_(outer.weight, std=added)

    def forward(self, rows: Tensor, padding: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the (B, X, C) rows after the block, and the first norm of its input."""
        normed = self.ln_1(rows)
        rows = rows + self.attn(normed, padding)
        return rows + self.mlp(self.ln_2(rows)), normed


class Encoder(nn.Module):
    """A sequence of blocks, initialised as in the release."""

    def __init__(self, config: EncoderConfig, layers: int) -> None:
        super().__init__()
        self.resblocks = nn.ModuleList(Block(config) for _ in range(layers))

    def forward(self, rows: Tensor, padding: Tensor | None) -> list[Tensor]:
        """Return the (B, X, C) output of each block, normalised by the next block's first norm, except the last."""
        stages = []
        for block in self.resblocks:
            rows, normed = block(rows, padding)
            stages.append(normed)
        return [*stages[1:], rows]


class JointEncoder(nn.Module):
    """Video rows and texts that attend to each other."""

    temporal_pos_embed: Tensor

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config, width = config, config.width
        self.joint_temporal_encoder = Encoder(config, config.joint_layers)
        self.video_pre_proj = nn.Linear(config.feature_dim, width, bias=False)
        self.text_pre_proj = nn.Linear(config.text_dim, width, bias=False)
        self.ln_text_init, self.ln_video_init, self.ln_position_init, self.ln_joint_post_enc = (
            nn.LayerNorm(width) for _ in range(4)
        )
        self.temporal_pos_embed = nn.Parameter(torch.empty(config.positions, width))
        self.text_temporal_pos_embed = nn.Parameter(torch.empty(config.positions, width))
        for each in (self.video_pre_proj.weight, self.text_pre_proj.weight):
            nn.init.normal_(each, std=DEVIATION)
        for table in (self.temporal_pos_embed, self.text_temporal_pos_embed):
            nn.init.normal_(table, std=DEVIATION)

    def video_rows(self, features: Tensor, positions: Tensor) -> Tensor:
        """Return the (B, T, C) rows for (B, T, D) features and positions from ``of_length``."""
        rows: Tensor = self.ln_video_init(self.video_pre_proj(features)) + self.ln_position_init(positions)
        return rows

    def text_rows(self, texts: Tensor) -> Tensor:
        """Return the (B, N, C) rows for (B, N, E) texts, without positions."""
        rows: Tensor = self.ln_text_init(self.text_pre_proj(texts))
        return rows

    def joint(
        self, video: Tensor, texts: Tensor, video_padding: Tensor | None, text_padding: Tensor | None
    ) -> tuple[list[Tensor], list[Tensor]]:
        """Return the stages of the (B, T, C) rows of videos and of the (B, N, C) rows of their texts.

        video_padding, text_padding: (B, T) and (B, N), True for padding; both None if there is none.
        """
        n = video.shape[1]
        padding = None
        if video_padding is not None and text_padding is not None:
            padding = torch.cat((video_padding, text_padding), dim=1)
        stages = self.joint_temporal_encoder(torch.cat((video, texts), dim=1), padding)
        stages[-1] = self.ln_joint_post_enc(stages[-1])
        return [stage[:, :n] for stage in stages], [stage[:, n:] for stage in stages]


class Aligned(NamedTuple):
    """TAN's outputs for A videos and the texts of B videos, which are the same videos.

    dual, joint: (A, stages, T, B, N) cosines of rows with texts. In ``joint``, the texts of video b are encoded with
    video b. dual_alignability, joint_alignability: (B, N, 1) and (B, stages, N, 1) logits; None without the head.
    dual_video, dual_text: (A, stages, T, C) and (B, N, C) unit vectors. joint_video, joint_text: the outputs of the
    joint encoder, (A, stages, T, C) and (B, stages, N, C).
    """

    dual: Tensor
    joint: Tensor
    dual_alignability: Tensor | None
    joint_alignability: Tensor | None
    dual_video: Tensor
    dual_text: Tensor
    joint_video: Tensor
    joint_text: Tensor


class Tan(JointEncoder):
    """The network: separate encoders of video and texts (dual), and a joint encoder of both."""

    config: TanConfig

    def __init__(self, config: TanConfig) -> None:
        super().__init__(config)
        self.video_temporal_encoder = Encoder(config, config.video_layers)
        self.ln_video_post_enc = nn.LayerNorm(config.width)
        if config.video_positions == "sine":
            del self.temporal_pos_embed
            self.register_buffer("temporal_pos_embed", sines(config.positions, config.width))
        if config.alignability:
            self.binary_head = nn.Linear(config.width, 1)
            nn.init.normal_(self.binary_head.weight, std=DEVIATION)
            nn.init.zeros_(self.binary_head.bias)

    def forward(
        self,
        features: Tensor,
        texts: Tensor,
        video_padding: Tensor | None = None,
        text_padding: Tensor | None = None,
        *,
        start: int = 0,
        interpolate_from: int | None = None,
        text_interpolate_from: int | None = None,
    ) -> Aligned:
        """Return the outputs for (A, T, D) features and the (A, N, E) texts of the same videos.

        video_padding, text_padding: as in ``joint``. start: the position of the first row; the release draws it from
        0..T // 2 - 1, for each branch. interpolate_from, text_interpolate_from: see ``of_length``.
        Raises ValueError if there are more rows or texts than positions.
        """
        video = self.video_rows(
            features, of_length(self.temporal_pos_embed, features.shape[1], start=start, source=interpolate_from)
        )
        text = self.text_rows(texts)
        stages = self.video_temporal_encoder(video, video_padding)
        stages[-1] = self.ln_video_post_enc(stages[-1])
        dual_video = functional.normalize(torch.stack(stages, dim=1), dim=-1)
        dual_text = functional.normalize(text, dim=-1)
        placed = text
        if self.config.text_positions:
            table = of_length(self.text_temporal_pos_embed, texts.shape[1], source=text_interpolate_from)
            placed = text + self.ln_position_init(table)
        joint_video, joint_text = (
            torch.stack(each, dim=1) for each in self.joint(video, placed, video_padding, text_padding)
        )
        joint = torch.einsum(
            "astc,bskc->astbk", functional.normalize(joint_video, dim=-1), functional.normalize(joint_text, dim=-1)
        )
        head = self.binary_head if self.config.alignability else None
        return Aligned(
            torch.einsum("astc,bkc->astbk", dual_video, dual_text),
            joint,
            None if head is None else head(text),
            None if head is None else head(joint_text),
            dual_video,
            dual_text,
            joint_video,
            joint_text,
        )


def of_length(table: Tensor, length: int, *, start: int = 0, source: int | None = None) -> Tensor:
    """Return the (length, C) positions from ``start`` on, or the first ``source`` positions interpolated to ``length``.

    Interpolation is linear between the centres of rows. Raises ValueError if the table has too few rows.
    """
    if (start + length if source is None else source) > len(table):
        raise ValueError(f"the table has {len(table)} positions: {source or start + length} are needed")
    if source is None:
        return table[start : start + length]
    return functional.interpolate(table[None, :source].transpose(1, 2), size=length, mode="linear")[0].T


def sines(positions: int, width: int) -> Tensor:
    """Return the (positions, width) table of sines and cosines; the positions span one turn."""
    angle = torch.arange(positions) / (positions - 1 + 1e-6) * 2 * math.pi
    angles = angle[:, None] / 10_000 ** (torch.arange(width, dtype=torch.float32) // 2 * 2 / width)
    return torch.stack((angles[:, 0::2].sin(), angles[:, 1::2].cos()), dim=2).flatten(1)


def said_at(start_s: Tensor, end_s: Tensor, length: int) -> Tensor:
    """Return the (B, N, length) mask of the rows t of sentences, start <= t < end, for (B, N) times in seconds."""
    t = torch.arange(length, device=start_s.device)
    return (start_s[..., None] <= t) & (t < end_s[..., None])


def contrastive_loss(cosines: Tensor, said: Tensor, text_padding: Tensor) -> Tensor:
    """Return the loss of TAN's first stage for the (B, stages, T, B, N) cosines of a branch.

    said: (B, N, T), from ``said_at``. text_padding: (B, N). It is the mean of two softmax losses: each row with a text
    against all texts of the batch, and each text with a row against all rows, including padding. The loss of both
    branches is the mean of their losses.
    """
    n, stages, rows = cosines.shape[:3]
    kept = ~text_padding.flatten()
    positive = torch.zeros(n, rows, *said.shape[:2], dtype=torch.bool, device=said.device)
    every = torch.arange(n)
    positive[every, :, every] = said.transpose(1, 2)
    positive = positive.flatten(2)[..., kept].flatten(0, 1)
    logits = (cosines / TEMPERATURE).flatten(3)[..., kept].transpose(0, 1).reshape(stages, n * rows, -1)
    right = logits.masked_fill(~positive, -6e4)
    of_rows, of_texts = (
        (logits.logsumexp(dim) - right.logsumexp(dim))[:, positive.any(dim - 1)].mean() for dim in (2, 1)
    )
    return (of_rows + of_texts) / 2

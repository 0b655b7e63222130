"""The joint encoder of TAN (Han et al., 2022), which aligns sentences with the seconds of a video.

Parameters are named as in the published checkpoints of github.com/TengdaHan/TemporalAlignNet.
"""

from collections import OrderedDict

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepline.models.step_grounding_config import StepGroundingConfig

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

    def __init__(self, config: StepGroundingConfig) -> None:
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

    def __init__(self, config: StepGroundingConfig, layers: int) -> None:
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

    def __init__(self, config: StepGroundingConfig) -> None:
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
        """Return the (B, T, C) rows for (B, T, D) features and (T, C) or (B, T, C) positions."""
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


def interpolated(table: Tensor, length: int) -> Tensor:
    """Return (length, C) positions: the rows of a table, interpolated linearly between the centres of rows."""
    return functional.interpolate(table[None].transpose(1, 2), size=length, mode="linear")[0].T

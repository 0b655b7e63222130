"""Transformer layers as in BERT and CLIP4Caption: post-norm, with a very small epsilon."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepline.models.hirest_joint_config import JointConfig

EPS = 1e-12
"""The epsilon of CLIP4Caption's norms."""
DEVIATION = 0.02
"""The standard deviation of CLIP4Caption's initial weights."""
OFFSET = -10_000.0
"""The value that the release adds to attention scores to mask frames. Its masks are all zeros, so it is added to every
score; in float32 this rounds scores to steps of 2^-10."""


class Memory(NamedTuple):
    """The (B, H, S, E / H) keys and values of S rows, for H heads."""

    keys: Tensor
    values: Tensor


class Attention(nn.Module):
    """Attention of rows to a memory, with a residual connection and a norm."""

    def __init__(self, config: JointConfig) -> None:
        super().__init__()
        self.heads, self.share = config.heads, config.dropout
        self.query, self.key, self.value, self.output = (nn.Linear(config.hidden, config.hidden) for _ in range(4))
        self.dropout = nn.Dropout(config.dropout)
        self.norm = nn.LayerNorm(config.hidden, eps=EPS)

    def memory(self, rows: Tensor) -> Memory:
        """Return the keys and values of (B, S, E) rows."""
        return Memory(self._split(self.key(rows)), self._split(self.value(rows)))

    def forward(self, rows: Tensor, memory: Memory, mask: Tensor | None) -> Tensor:
        """Return the output for (B, R, E) rows, of the same shape.

        mask: broadcast to (B, H, R, S); booleans, False for masked positions, or values added to the scores.
        """
        attended = functional.scaled_dot_product_attention(
            self._split(self.query(rows)), *memory, attn_mask=mask, dropout_p=self.share if self.training else 0.0
        )
        result: Tensor = self.norm(rows + self.dropout(self.output(attended.transpose(1, 2).flatten(2))))
        return result

    def _split(self, rows: Tensor) -> Tensor:
        return rows.view(*rows.shape[:2], self.heads, rows.shape[2] // self.heads).transpose(1, 2)


class FeedForward(nn.Module):
    """Two linear layers for each row, with a residual connection and a norm."""

    def __init__(self, config: JointConfig) -> None:
        super().__init__()
        self.inner = nn.Linear(config.hidden, config.feedforward)
        self.outer = nn.Linear(config.feedforward, config.hidden)
        self.dropout = nn.Dropout(config.dropout)
        self.norm = nn.LayerNorm(config.hidden, eps=EPS)

    def forward(self, rows: Tensor) -> Tensor:
        """Return rows of the same shape."""
        result: Tensor = self.norm(rows + self.dropout(self.outer(functional.gelu(self.inner(rows)))))
        return result


class EncoderLayer(nn.Module):
    """Frames attend to frames."""

    def __init__(self, config: JointConfig) -> None:
        super().__init__()
        self.attention, self.feed_forward = Attention(config), FeedForward(config)

    def forward(self, rows: Tensor, mask: Tensor) -> Tensor:
        """Return (B, T, E) rows; mask: as in ``Attention``."""
        result: Tensor = self.feed_forward(self.attention(rows, self.attention.memory(rows), mask))
        return result


class Encoder(nn.Module):
    """The visual encoder: (B, T, embed) frames to (B, T, hidden)."""

    def __init__(self, config: JointConfig) -> None:
        super().__init__()
        self.masked = config.padding == "masked"
        self.project = nn.Linear(config.embed, config.hidden)
        self.positions = nn.Embedding(config.positions, config.hidden)
        self.norm = nn.LayerNorm(config.hidden, eps=EPS)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.apply(start)

    def forward(self, frames: Tensor, real: Tensor) -> Tensor:
        """Return the encoded frames; real: (B, T), False for padding.

        Raises ValueError if there are more frames than positions.
        """
        if frames.shape[1] > len(self.positions.weight):
            raise ValueError(
                f"{frames.shape[1]} frames are more than the {len(self.positions.weight)} that have a position"
            )
        rows: Tensor = self.dropout(self.norm(self.project(frames) + self.positions.weight[: frames.shape[1]]))
        mask = frames.new_full(real.shape, OFFSET)
        if self.masked:
            mask = mask.masked_fill(~real, -torch.inf)
        for layer in self.layers:
            rows = layer(rows, mask[:, None, None])
        return rows


def start(module: nn.Module) -> None:
    """Initialise a module of CLIP4Caption: biases with 0, other parameters from a normal distribution."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=DEVIATION)
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.bias)

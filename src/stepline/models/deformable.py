"""Multi-scale deformable attention over time, and the transformer layers made of it.

Deformable DETR (Zhu et al., ICLR 2021) in one dimension, as PDVC (Wang et al., ICCV 2021) uses it, in plain PyTorch.
One video at a time, without padding: S are the rows of all L levels one after the other, Q the queries, E the hidden
size.

Rows are interpolated by one sparse matrix product per head, which is built by ``scatter_add``. Unlike ``grid_sample``
all of it has a deterministic backward pass, on a GPU too.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn


class View(NamedTuple):
    """From where Q queries look: (Q,) centres, and (Q, L) how far an offset of 1 leads, in fractions of the video."""

    centre: Tensor
    unit: Tensor

    def of(self, chosen: Tensor) -> "View":
        """Return the view of some queries, given by number."""
        return View(self.centre[chosen], self.unit[chosen])


class Levels(NamedTuple):
    """How S rows fall into L levels: the (L,) lengths of these and the (L,) first rows."""

    lengths: Tensor
    starts: Tensor

    @classmethod
    def of(cls, lengths: Sequence[int], device: torch.device) -> "Levels":
        """Return the levels of these lengths."""
        sizes = torch.tensor(lengths, device=device)
        return cls(sizes, sizes.cumsum(0) - sizes)

    def view(self, reference: Tensor, points: int) -> View:
        """Return how one looks from centres, (Q, 1), or from centres with lengths, (Q, 2), in fractions of the video.

        Offsets from a centre alone count rows of a level; of a length, ``points`` of them make the half.
        """
        if reference.shape[1] == 1:
            return View(reference[:, 0], (1 / self.lengths.to(reference)).expand(len(reference), -1))
        return View(reference[:, 0], (reference[:, 1:] / (2 * points)).expand(-1, len(self.lengths)))

    def neighbours(self, locations: Tensor) -> tuple[Tensor, Tensor]:
        """Return which rows lie on both sides of (..., L, P) locations, and their weights, both (..., L, P, 2).

        locations: fractions of the video; row i of n stands at (i + 0.5) / n. The weights are those of linear
        interpolation with 0 beyond the first and the last row; there the row is one that exists, and its weight 0.
        """
        lengths = self.lengths[:, None]
        place = locations * lengths - 0.5
        before = place.detach().floor()
        share = place - before
        row = torch.stack((before, before + 1), dim=-1).long()
        there = (row >= 0) & (row < lengths[..., None])
        weights = torch.stack((1 - share, share), dim=-1) * there
        return row.clamp(min=0).minimum(lengths[..., None] - 1) + self.starts[:, None, None], weights


class Locations(nn.Module):
    """Where a query samples: offsets from its reference, by a linear map that begins with a fan of fixed offsets.

    The fan of a head opens to one side, point by point; ``centred``, it lies around the reference.
    """

    def __init__(self, inputs: int, heads: int, levels: int, points: int, *, centred: bool = False) -> None:
        super().__init__()
        self.shape = heads, levels, points
        self.offset = nn.Linear(inputs, heads * levels * points)
        angle = torch.arange(heads) * (2 * math.pi / heads)
        side = angle.cos() / torch.maximum(angle.cos().abs(), angle.sin().abs())
        steps = torch.arange(1.0, points + 1)
        fan = side[:, None, None] * (steps - steps.mean() if centred else steps).expand(self.shape)
        nn.init.zeros_(self.offset.weight)
        with torch.no_grad():
            self.offset.bias.copy_(fan.flatten())

    def forward(self, query: Tensor, view: View) -> Tensor:
        """Return (Q, heads, L, points) locations of (Q, ``inputs``) queries, in fractions of the video."""
        offset = self.offset(query).unflatten(-1, self.shape)
        locations: Tensor = view.centre[:, None, None, None] + offset * view.unit[:, None, :, None]
        return locations


class DeformableAttention(nn.Module):
    """Attention of a query to ``points`` places per head and level, which it chooses itself."""

    def __init__(self, hidden: int, heads: int, levels: int, points: int) -> None:
        super().__init__()
        self.heads = heads
        self.locations = Locations(hidden, heads, levels, points)
        self.weight = nn.Linear(hidden, heads * levels * points)
        self.value, self.output = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        nn.init.zeros_(self.weight.weight)
        for each in (self.value, self.output):
            nn.init.xavier_uniform_(each.weight)
        for each in (self.weight, self.value, self.output):
            nn.init.zeros_(each.bias)

    def forward(self, query: Tensor, view: View, rows: Tensor, levels: Levels) -> Tensor:
        """Return what (Q, E) queries find in the (S, E) rows, (Q, E)."""
        row, share = levels.neighbours(self.locations(query, view))
        weight = self.weight(query).unflatten(-1, (self.heads, -1)).softmax(dim=-1)
        parts = share.flatten(2) * weight.repeat_interleave(2, dim=-1)
        mixing = parts.new_zeros(len(query), self.heads, len(rows)).scatter_add(2, row.flatten(2), parts)
        value = self.value(rows).unflatten(-1, (self.heads, -1))
        found: Tensor = self.output(torch.einsum("qhs,shd->qhd", mixing, value).flatten(1))
        return found


class EncoderLayer(nn.Module):
    """Deformable self-attention of rows and a feed-forward part, each with a residual and a norm after it."""

    def __init__(self, hidden: int, feedforward: int, heads: int, levels: int, points: int, dropout: float) -> None:
        super().__init__()
        self.attention = DeformableAttention(hidden, heads, levels, points)
        self.feed_forward = feed_forward(hidden, feedforward, dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Tensor, positions: Tensor, view: View, levels: Levels) -> Tensor:
        """Return (S, E) rows from (S, E) rows, their encoded positions, and the view from their places."""
        rows = self.norms[0](rows + self.dropout(self.attention(rows + positions, view, rows, levels)))
        encoded: Tensor = self.norms[1](rows + self.feed_forward(rows))
        return encoded


class DecoderLayer(nn.Module):
    """Self-attention of queries, their deformable attention to rows, and a feed-forward part."""

    def __init__(self, hidden: int, feedforward: int, heads: int, levels: int, points: int, dropout: float) -> None:
        super().__init__()
        self.among = nn.MultiheadAttention(hidden, heads, dropout=dropout)
        nn.init.xavier_uniform_(self.among.out_proj.weight)
        self.attention = DeformableAttention(hidden, heads, levels, points)
        self.feed_forward = feed_forward(hidden, feedforward, dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries: Tensor, positions: Tensor, view: View, rows: Tensor, levels: Levels) -> Tensor:
        """Return (Q, E) queries from (Q, E) queries, their positions and view, and the (S, E) encoded rows."""
        placed = queries + positions
        queries = self.norms[0](queries + self.dropout(self.among(placed, placed, queries, need_weights=False)[0]))
        found = self.attention(queries + positions, view, rows, levels)
        queries = self.norms[1](queries + self.dropout(found))
        decoded: Tensor = self.norms[2](queries + self.feed_forward(queries))
        return decoded


def feed_forward(hidden: int, width: int, dropout: float) -> nn.Sequential:
    """Return two linear maps with a ReLU and dropout between them, and dropout after."""
    maps = nn.Linear(hidden, width), nn.Linear(width, hidden)
    for each in maps:
        nn.init.xavier_uniform_(each.weight)
    return nn.Sequential(maps[0], nn.ReLU(), nn.Dropout(dropout), maps[1], nn.Dropout(dropout))

"""Multi-scale deformable attention over time, and transformer layers that use it.

Deformable DETR (Zhu et al., ICLR 2021) in one dimension, as in PDVC (Wang et al., ICCV 2021), in plain PyTorch. Shapes:
B videos per batch, S rows of all L levels concatenated, Q queries, E the hidden size.

Rows are interpolated by one sparse matrix product per head, which is built with ``scatter_add``. Unlike
``grid_sample``, its backward pass is deterministic, also on a GPU.
"""

import math
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

Padding = Literal["zeros", "border"]
"""The values outside a level: zeros, or its first and last row, as in ``grid_sample``."""


class View(NamedTuple):
    """The viewpoint of queries: (..., L) centres, and the length of an offset of 1, as fractions of each level."""

    centre: Tensor
    unit: Tensor


class Levels(NamedTuple):
    """The division of S rows into L levels.

    lengths, starts: (L,), the number of rows and the first row of each level. filled: (B, L), the fraction of a level's
    rows that are not padding. padding: (B, S), True for padding; None if there is none.
    """

    lengths: Tensor
    starts: Tensor
    filled: Tensor
    padding: Tensor | None

    def view(self, reference: Tensor, points: int) -> View:
        """Return the view from (B, Q, 1) centres, or (B, Q, 2) centres and lengths, as fractions of the video.

        Without lengths, an offset of 1 is one row of a level; with lengths, ``points`` offsets make half the length.
        """
        placed = reference[:, :, None] * self.filled[:, None, :, None]
        centre = placed[..., 0]
        if reference.shape[2] == 1:
            return View(centre, (1 / self.lengths.to(reference)).expand_as(centre))
        return View(centre, placed[..., 1] / (2 * points))

    def neighbours(self, locations: Tensor, padding: Padding) -> tuple[Tensor, Tensor]:
        """Return the two rows next to (..., L, P) locations and their weights, both (..., L, P, 2).

        locations: fractions of the level; row i of n is at (i + 0.5) / n. The weights are those of linear
        interpolation. Outside the level both rows are its first or last row, with weight 0 for ``zeros``.
        """
        lengths = self.lengths[:, None]
        place = locations * lengths - 0.5
        before = place.detach().floor()
        share = place - before
        row = torch.stack((before, before + 1), dim=-1).long()
        weights = torch.stack((1 - share, share), dim=-1)
        if padding == "zeros":
            weights = weights * ((row >= 0) & (row < lengths[..., None]))
        return row.clamp(min=0).minimum(lengths[..., None] - 1) + self.starts[:, None, None], weights


class Locations(nn.Module):
    """The sampling locations of a query: offsets from its reference, predicted by a linear layer.

    The layer is initialised to fixed offsets. Those of a head extend to one side of the reference; if ``centred``, to
    both sides.
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
        """Return the (..., heads, L, points) locations of (..., ``inputs``) queries, as fractions of each level."""
        offset = self.offset(query).unflatten(-1, self.shape)
        locations: Tensor = view.centre[..., None, :, None] + offset * view.unit[..., None, :, None]
        return locations


class DeformableAttention(nn.Module):
    """Attention of a query to ``points`` locations per head and level, which the query predicts."""

    def __init__(self, hidden: int, heads: int, levels: int, points: int, padding: Padding) -> None:
        super().__init__()
        self.heads, self.padding = heads, padding
        self.locations = Locations(hidden, heads, levels, points)
        self.weight = nn.Linear(hidden, heads * levels * points)
        self.value, self.output = nn.Linear(hidden, hidden), nn.Linear(hidden, hidden)
        nn.init.zeros_(self.weight.weight)
        for each in (self.value, self.output):
            nn.init.xavier_uniform_(each.weight)
        for each in (self.weight, self.value, self.output):
            nn.init.zeros_(each.bias)

    def forward(self, query: Tensor, view: View, rows: Tensor, levels: Levels) -> Tensor:
        """Return the attention output of (B, Q, E) queries over (B, S, E) rows, (B, Q, E); padding counts as zeros."""
        row, share = levels.neighbours(self.locations(query, view), self.padding)
        weight = self.weight(query).unflatten(-1, (self.heads, -1)).softmax(dim=-1)
        parts = share.flatten(3) * weight.repeat_interleave(2, dim=-1)
        mixing = parts.new_zeros(*parts.shape[:3], rows.shape[1]).scatter_add(3, row.flatten(3), parts)
        value = values(self.value, rows, levels).view(*rows.shape[:2], self.heads, -1)
        found: Tensor = self.output(torch.einsum("bqhs,bshd->bqhd", mixing, value).flatten(2))
        return found


class EncoderLayer(nn.Module):
    """Deformable self-attention of rows and a feed-forward network, both post-norm with residuals."""

    def __init__(
        self, hidden: int, feedforward: int, heads: int, levels: int, points: int, padding: Padding, dropout: float
    ) -> None:
        super().__init__()
        self.attention = DeformableAttention(hidden, heads, levels, points, padding)
        self.feed_forward = feed_forward(hidden, feedforward, dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        self.dropout = nn.Dropout(dropout)

    def forward(self, rows: Tensor, positions: Tensor, view: View, levels: Levels) -> Tensor:
        """Return (B, S, E) rows from (B, S, E) rows, their positional encoding, and the view from their positions."""
        rows = self.norms[0](rows + self.dropout(self.attention(rows + positions, view, rows, levels)))
        encoded: Tensor = self.norms[1](rows + self.feed_forward(rows))
        return encoded


class DecoderLayer(nn.Module):
    """Self-attention of queries, their deformable attention to rows, and a feed-forward network."""

    def __init__(
        self, hidden: int, feedforward: int, heads: int, levels: int, points: int, padding: Padding, dropout: float
    ) -> None:
        super().__init__()
        self.among = nn.MultiheadAttention(hidden, heads, dropout=dropout, batch_first=True)
        nn.init.xavier_uniform_(self.among.out_proj.weight)
        self.attention = DeformableAttention(hidden, heads, levels, points, padding)
        self.feed_forward = feed_forward(hidden, feedforward, dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, queries: Tensor, positions: Tensor, view: View, rows: Tensor, levels: Levels, absent: Tensor | None
    ) -> Tensor:
        """Return (B, Q, E) queries from (B, Q, E) queries, their positions and view, and the (B, S, E) encoded rows.

        absent: (B, Q), True for padding; None if there is none.
        """
        placed = queries + positions
        among = self.among(placed, placed, queries, key_padding_mask=absent, need_weights=False)[0]
        queries = self.norms[0](queries + self.dropout(among))
        found = self.attention(queries + positions, view, rows, levels)
        queries = self.norms[1](queries + self.dropout(found))
        decoded: Tensor = self.norms[2](queries + self.feed_forward(queries))
        return decoded


def values(project: nn.Linear, rows: Tensor, levels: Levels) -> Tensor:
    """Return (B, S, E) projected rows, with zeros for padding."""
    projected: Tensor = project(rows)
    return projected if levels.padding is None else projected.masked_fill(levels.padding[..., None], 0)


def feed_forward(hidden: int, width: int, dropout: float) -> nn.Sequential:
    """Return two linear layers with ReLU and dropout between them, and dropout after them."""
    maps = nn.Linear(hidden, width), nn.Linear(width, hidden)
    for each in maps:
        nn.init.xavier_uniform_(each.weight)
    return nn.Sequential(maps[0], nn.ReLU(), nn.Dropout(dropout), maps[1], nn.Dropout(dropout))

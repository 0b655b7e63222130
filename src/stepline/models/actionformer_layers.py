"""Layers of ActionFormer on (B, C, T) rows, with a mask ``there``, (B, 1, T): 1 for rows of a video, 0 for padding."""

import torch
from torch import Tensor, nn
from torch.nn import functional

PADDED = -1e4
"""The value added to attention scores of masked rows, so that their weights are 0 in float32."""
SPAN = 32
"""The number of rows that local attention processes at once."""
SCALE = 1e-4
"""The initial scale of a branch's channels."""


class Conv(nn.Conv1d):
    """A convolution with output 0 in padding and an initial bias of 0."""

    def __init__(
        self, inputs: int, outputs: int, kernel: int = 1, *, stride: int = 1, groups: int = 1, bias: bool = True
    ) -> None:
        super().__init__(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=bias)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, rows: Tensor, there: Tensor) -> Tensor:  # type: ignore[override]
        """Return the convolved rows. there: the mask of the outputs."""
        return super().forward(rows) * there


class Norm(nn.LayerNorm):
    """Layer normalisation over the channels of each row."""

    def forward(self, rows: Tensor) -> Tensor:
        """Return the normalised rows."""
        return super().forward(rows.transpose(1, 2)).transpose(1, 2)


def local_attention(
    query: Tensor, key: Tensor, value: Tensor, there: Tensor, window: int, relative: Tensor | None = None
) -> Tensor:
    """Return softmax attention of each row to the ``window`` rows around it, (B, H, T, E) to (B, H, T, E).

    there: (B, 1, T). relative: (H, window), added to the scores of the positions in a window, or None. Outputs in
    padding are undefined. Rows are processed in spans, so that time and memory are linear in T.
    """
    batch, heads, length, width = query.shape
    reach = window // 2
    span = min(SPAN, length)
    spans = -(-length // span)
    behind = spans * span - length

    def spanned(rows: Tensor) -> Tensor:
        around = functional.pad(rows, (0, 0, reach, reach + behind)).unfold(2, span + 2 * reach, span)
        return around.permute(0, 2, 1, 4, 3).flatten(0, 1)

    asked = torch.unflatten(functional.pad(query, (0, 0, 0, behind)), 2, (spans, span)).transpose(1, 2).flatten(0, 1)
    place = torch.arange(span + 2 * reach, device=query.device) - torch.arange(span, device=query.device)[:, None]
    near = (place >= 0) & (place < window)
    known = functional.pad(there, (reach, reach + behind)).unfold(2, span + 2 * reach, span)
    seen = near & (known.transpose(1, 2).flatten(0, 1) > 0)[:, None]
    added = torch.where(seen, 0.0, PADDED).to(query.dtype)
    if relative is not None:
        added = added + torch.where(near, relative[:, place.clamp(0, window - 1)], 0.0)
    found = functional.scaled_dot_product_attention(asked, spanned(key), spanned(value), attn_mask=added)
    return found.view(batch, spans, heads, span, width).transpose(1, 2).flatten(2, 3)[:, :, :length]


class Attention(nn.Module):
    """Self-attention whose queries, keys and values start with a convolution that can halve the number of rows."""

    def __init__(self, width: int, heads: int, window: int, stride: int, dropout: float, *, relative: bool) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        parts = ("query", "key", "value")
        self.around = nn.ModuleDict(
            {part: Conv(width, width, 3, stride=stride, groups=width, bias=False) for part in parts}
        )
        self.norms = nn.ModuleDict({part: Norm(width) for part in parts})
        self.maps = nn.ModuleDict({part: nn.Conv1d(width, width, 1) for part in parts})
        self.output = Conv(width, width)
        self.dropout = nn.Dropout(dropout)
        for part in parts:
            nn.init.zeros_(self.maps.get_parameter(f"{part}.bias"))
        self.relative = None
        if relative and window > 1:
            self.relative = nn.Parameter(torch.empty(heads, window))
            nn.init.trunc_normal_(self.relative, std=(2 / width) ** 0.5)

    def forward(self, rows: Tensor, there: Tensor) -> Tensor:
        """Return the output rows. there: the mask of the outputs."""
        parts = [self.maps[part](self.norms[part](self.around[part](rows, there))) for part in self.maps]
        query, key, value = (each.unflatten(1, (self.heads, -1)).transpose(2, 3) for each in parts)
        if self.window > 1:
            found = local_attention(query, key, value, there, self.window, self.relative)
        else:
            mask = (there > 0)[:, None]
            found = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        attended: Tensor = self.dropout(self.output(found.transpose(2, 3).flatten(1, 2), there))
        return attended


class Branch(nn.Module):
    """Scales the channels of a residual branch, and in training drops it for a fraction of the samples."""

    def __init__(self, width: int, share: float) -> None:
        super().__init__()
        self.share = share
        self.scale = nn.Parameter(torch.full((width, 1), SCALE))

    def forward(self, rows: Tensor) -> Tensor:
        """Return the branch."""
        rows = self.scale * rows
        if not self.training:
            return rows
        kept = torch.rand(len(rows), 1, 1, device=rows.device) >= self.share
        return rows / (1 - self.share) * kept


class Block(nn.Module):
    """A pre-norm transformer block; with ``stride`` 2 it halves the number of rows."""

    def __init__(
        self, width: int, heads: int, window: int, stride: int, dropout: float, droppath: float, *, relative: bool
    ) -> None:
        super().__init__()
        self.stride = stride
        self.norm, self.inner_norm = Norm(width), Norm(width)
        self.attention = Attention(width, heads, window, stride, dropout, relative=relative)
        self.inner, self.outer = nn.Conv1d(width, 4 * width, 1), nn.Conv1d(4 * width, width, 1)
        self.dropout = nn.Dropout(dropout)
        self.attended, self.fed = (Branch(width, droppath) if droppath else nn.Identity() for _ in range(2))
        for each in (self.inner, self.outer):
            nn.init.zeros_(each.get_parameter("bias"))

    def forward(self, rows: Tensor, there: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rows and their mask."""
        there = there[..., :: self.stride]
        attended = self.attended(self.attention(self.norm(rows), there))
        if self.stride > 1:
            rows = functional.max_pool1d(rows, self.stride + 1, self.stride, (self.stride + 1) // 2)
        rows = rows * there + attended
        fed = self.outer(self.dropout(functional.gelu(self.inner(self.inner_norm(rows)))))
        return rows + self.fed(self.dropout(fed) * there), there

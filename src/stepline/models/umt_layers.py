"""The layers of UMT: pre-norm, with positions added to queries and keys, never to values."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepline.models.umt_config import UmtConfig


class Attention(nn.Module):
    """Attention of rows to keys and values."""

    def __init__(self, config: UmtConfig) -> None:
        super().__init__()
        self.heads, self.share = config.heads, config.dropout
        self.query, self.key, self.value, self.output = (nn.Linear(config.hidden, config.hidden) for _ in range(4))
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, rows: Tensor, keys: Tensor, values: Tensor, there: Tensor | None) -> Tensor:
        """Return the output for (B, R, H) rows, with the same shape; there: (B, S), False for masked keys, or None."""
        attended = functional.scaled_dot_product_attention(
            self._split(self.query(rows)),
            self._split(self.key(keys)),
            self._split(self.value(values)),
            attn_mask=None if there is None else there[:, None, None],
            dropout_p=self.share if self.training else 0.0,
        )
        result: Tensor = self.dropout(self.output(attended.transpose(1, 2).flatten(2)))
        return result

    def _split(self, rows: Tensor) -> Tensor:
        return rows.view(*rows.shape[:2], self.heads, rows.shape[2] // self.heads).transpose(1, 2)


class FeedForward(nn.Sequential):
    """Two linear layers for each row."""

    def __init__(self, config: UmtConfig) -> None:
        super().__init__(
            nn.Linear(config.hidden, config.feedforward),
            nn.ReLU(),
            nn.Dropout(config.dropout),
            nn.Linear(config.feedforward, config.hidden),
            nn.Dropout(config.dropout),
        )


class Positions(nn.Module):
    """A learned vector for each position."""

    def __init__(self, config: UmtConfig) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, config.positions, config.hidden) / config.hidden**0.5)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the vectors for (B, T, H) rows; raise ValueError if there are more rows than positions."""
        n, positions = rows.shape[1], self.table.shape[1]
        if n > positions:
            raise ValueError(f"{n} rows are more than the {positions} that have a position")
        result: Tensor = self.dropout(self.table[:, :n].expand(len(rows), -1, -1))
        return result


class VideoEncoder(nn.Module):
    """Rows attend to rows: (B, T, D) to (B, T, H)."""

    def __init__(self, config: UmtConfig) -> None:
        super().__init__()
        self.dropout = nn.Dropout(config.video_dropout)
        self.project, self.positions = nn.Linear(config.feature_dim, config.hidden), Positions(config)
        self.attention, self.feed_forward = Attention(config), FeedForward(config)
        self.norms = nn.ModuleList(nn.LayerNorm(config.hidden) for _ in range(2))

    def forward(self, rows: Tensor, there: Tensor) -> Tensor:
        """Return the encoded rows; there: (B, T), False for padding."""
        rows = self.project(self.dropout(rows))
        normed = self.norms[0](rows)
        placed = normed + self.positions(rows)
        rows = rows + self.attention(placed, placed, normed, there)
        result: Tensor = rows + self.feed_forward(self.norms[1](rows))
        return result


class QueryGenerator(nn.Module):
    """Attention of each row of a video to the words. There is no residual connection, so the output is the query."""

    def __init__(self, config: UmtConfig) -> None:
        super().__init__()
        self.dropout = nn.Dropout(config.text_dropout)
        self.project, self.norm = nn.Linear(config.text_dim, config.hidden, bias=False), nn.LayerNorm(config.hidden)
        self.attention = Attention(config)

    def forward(self, memory: Tensor, words: Tensor, said: Tensor) -> Tensor:
        """Return (B, T, H) queries for encoded rows and (B, L, E) words; said: (B, L), False for padding."""
        words = self.norm(self.project(self.dropout(words)))
        result: Tensor = self.attention(memory, words, words, said)
        return result


class DecoderLayer(nn.Module):
    """Queries attend to each other, then to the video."""

    def __init__(self, config: UmtConfig) -> None:
        super().__init__()
        self.among, self.attention = Attention(config), Attention(config)
        self.feed_forward = FeedForward(config)
        self.norms = nn.ModuleList(nn.LayerNorm(config.hidden) for _ in range(3))

    def forward(self, rows: Tensor, memory: Tensor, keys: Tensor, positions: Tensor, there: Tensor | None) -> Tensor:
        """Return (B, T, H) rows; keys: of the memory; positions: of the rows; there: as in ``Attention``."""
        normed = self.norms[0](rows)
        placed = normed + positions
        rows = rows + self.among(placed, placed, normed, there)
        rows = rows + self.attention(self.norms[1](rows) + positions, keys, memory, there)
        result: Tensor = rows + self.feed_forward(self.norms[2](rows))
        return result


class Decoder(nn.Module):
    """The decoder: from (B, T, H) queries to the input of the heads."""

    def __init__(self, config: UmtConfig) -> None:
        super().__init__()
        self.query_positions, self.key_positions = Positions(config), Positions(config)
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = nn.LayerNorm(config.hidden)

    def each(self, rows: Tensor, memory: Tensor, there: Tensor | None) -> Iterator[Tensor]:
        """Yield the rows after each layer, without the final norm; there: as in ``Attention``."""
        positions, keys = self.query_positions(rows), memory + self.key_positions(memory)
        for layer in self.layers:
            rows = layer(rows, memory, keys, positions, there)
            yield rows

    def forward(self, rows: Tensor, memory: Tensor, there: Tensor | None) -> Tensor:
        """Return the normalised rows after the last layer."""
        *_, last = self.each(rows, memory, there)
        result: Tensor = self.norm(last)
        return result

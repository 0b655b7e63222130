"""The caption head of PDVC: an LSTM with soft attention to rows at sampled locations (Sec. 3.3, "LSTM-DSA").

Word 0 is both the start and the end of a caption. Shapes: N queries of B videos, each with its view; S rows per video;
see ``deformable``.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepline.models.deformable import Levels, Locations, Padding, View, values


class Asked(NamedTuple):
    """Queries to caption: (N, E) queries, their view, and the (N,) video of each in the batch."""

    queries: Tensor
    view: View
    video: Tensor


class Seen(NamedTuple):
    """Precomputed inputs that all words of N captions share.

    gates: (N, 4 lstm), the contribution of the queries to the LSTM's gates. rows: (B S, E + A), the values and keys of
    attention; the keys are linear in the rows, so interpolation comes after them. first: (N, 1, 1), the first row of
    the video.
    """

    asked: Asked
    gates: Tensor
    rows: Tensor
    first: Tensor
    levels: Levels


class CaptionHead(nn.Module):
    """An autoregressive captioner: each word depends on the previous word, the query, and attention to the video.

    vocabulary: the largest word id. hidden: E of queries and rows. words: the maximum length of a decoded caption.
    """

    def __init__(
        self,
        *,
        vocabulary: int,
        hidden: int,
        lstm: int,
        attention: int,
        levels: int,
        points: int,
        padding: Padding,
        dropout: float,
        words: int,
    ) -> None:
        super().__init__()
        self.words, self.sizes, self.padding = words, (hidden, lstm), padding
        self.embed = nn.Embedding(vocabulary + 1, lstm)
        self.locations = Locations(lstm + hidden, 1, levels, points, centred=True)
        self.value = nn.Linear(hidden, hidden)
        self.compare = nn.Linear(hidden, attention, bias=False)
        self.compare_state = nn.Linear(lstm, attention)
        self.weight = nn.Linear(attention, 1, bias=False)
        self.of_word = nn.Linear(lstm, 4 * lstm, bias=False)
        self.of_query = nn.Linear(hidden, 4 * lstm, bias=False)
        self.of_state = nn.Linear(hidden + lstm, 4 * lstm, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.logits = nn.Linear(lstm, vocabulary + 1)
        for gates in (self.of_word, self.of_query, self.of_state):
            nn.init.uniform_(gates.weight, -1 / math.sqrt(lstm), 1 / math.sqrt(lstm))
        for weight in (self.embed.weight, self.logits.weight):
            nn.init.uniform_(weight, -0.1, 0.1)
        nn.init.xavier_uniform_(self.value.weight)
        for bias in (self.value.bias, self.logits.bias):
            nn.init.zeros_(bias)

    def forward(self, asked: Asked, rows: Tensor, levels: Levels, captions: Tensor) -> Tensor:
        """Return the (N, W + 1, vocabulary + 1) log likelihoods of each word and the end, with teacher forcing.

        rows: (B, S, E). captions: (N, W) word ids, padded with 0, one caption per query.
        """
        seen, state = self._begin(asked, rows, levels)
        outputs = []
        for word in self.of_word(self.embed(functional.pad(captions, (1, 0)))).unbind(1):
            state = self._step(word, state, seen)
            outputs.append(state[0])
        likelihoods: Tensor = self.logits(self.dropout(torch.stack(outputs, dim=1))).log_softmax(dim=2)
        return likelihoods

    def losses(self, asked: Asked, rows: Tensor, levels: Levels, captions: Tensor) -> Tensor:
        """Return the (N,) mean negative log likelihoods of the words and end of captions, in nats; see ``forward``."""
        lengths = (captions > 0).sum(dim=1)
        captions = captions[:, : int(lengths.max())]
        targets = functional.pad(captions, (0, 1))
        likelihoods = self(asked, rows, levels, captions).gather(2, targets[..., None])[..., 0]
        counted = torch.arange(targets.shape[1], device=targets.device) <= lengths[:, None]
        costs: Tensor = -(likelihoods * counted).sum(dim=1) / (lengths + 1)
        return costs

    def greedy(self, asked: Asked, rows: Tensor, levels: Levels) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield, word by word, (N, vocabulary + 1) log likelihoods and the (N,) most likely words, 0 after the end.

        It stops when all captions are complete, or after ``words`` words.
        """
        seen, state = self._begin(asked, rows, levels)
        word = torch.zeros(len(asked.queries), dtype=torch.long, device=rows.device)
        going = word == 0
        for _ in range(self.words):
            state = self._step(self.of_word(self.embed(word)), state, seen)
            likelihoods = self.logits(state[0]).log_softmax(dim=1)
            word = likelihoods.argmax(dim=1)
            going = going & (word > 0)
            if not going.any():
                break
            yield likelihoods, word * going

    def decode(self, asked: Asked, rows: Tensor, levels: Levels) -> tuple[Tensor, Tensor]:
        """Return (N, W) ids of the most likely words, padded with 0, and the (N,) sums of their log likelihoods.

        W is the length of the longest caption without its end, at most ``words``.
        """
        total = rows.new_zeros(len(asked.queries))
        found = [torch.zeros(len(total), 0, dtype=torch.long, device=rows.device)]
        for likelihoods, word in self.greedy(asked, rows, levels):
            total = total + likelihoods.amax(dim=1) * (word > 0)
            found.append(word[:, None])
        return torch.cat(found, dim=1), total

    def _begin(self, asked: Asked, rows: Tensor, levels: Levels) -> tuple[Seen, tuple[Tensor, Tensor]]:
        value = values(self.value, rows, levels)
        table = torch.cat((value, self.compare(value)), dim=2).flatten(0, 1)
        first = (asked.video * rows.shape[1])[:, None, None]
        start = rows.new_zeros(len(asked.queries), self.sizes[1])
        return Seen(asked, self.of_query(asked.queries), table, first, levels), (start, start)

    def _step(self, word: Tensor, state: tuple[Tensor, Tensor], seen: Seen) -> tuple[Tensor, Tensor]:
        """Return the state (output, cell) after words; word: (N, 4 lstm), their contribution to the gates."""
        output, cell = state
        sampled = self._read(self.locations(torch.cat((output, seen.asked.queries), dim=1), seen.asked.view), seen)
        value, compared = sampled[..., : self.sizes[0]], sampled[..., self.sizes[0] :]
        weight = self.weight((compared + self.compare_state(output)[:, None]).tanh()).softmax(dim=1)
        gates = word + seen.gates + self.of_state(torch.cat(((weight * value).sum(dim=1), output), dim=1))
        into, kept, new, out = gates.chunk(4, dim=1)
        cell = kept.sigmoid() * cell + into.sigmoid() * new.tanh()
        return out.sigmoid() * cell.tanh(), cell

    def _read(self, locations: Tensor, seen: Seen) -> Tensor:
        """Return the (N, L P, E + A) rows at (N, 1, L, P) locations."""
        row, share = (each.flatten(1, -2) for each in seen.levels.neighbours(locations, self.padding))
        return (functional.embedding(row + seen.first, seen.rows) * share[..., None]).sum(dim=-2)

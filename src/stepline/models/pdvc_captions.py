"""The caption head of PDVC: an LSTM with soft attention to rows that it samples itself (Sec. 3.3, "LSTM-DSA").

Word 0 begins a caption and ends it. One video at a time: Q queries with their view, S rows; see ``deformable``.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepline.models.deformable import Levels, Locations, View


class Seen(NamedTuple):
    """What all words of Q captions have in common.

    queries: (Q, E). gates: (Q, 4 lstm), what the queries add to the LSTM's gates. rows: (S, E + A), values, and of each
    what the attention compares: a linear map, so rows are interpolated after it.
    """

    queries: Tensor
    gates: Tensor
    view: View
    rows: Tensor
    levels: Levels


class CaptionHead(nn.Module):
    """Words one after the other, each from the one before, the query, and what it sees in the video.

    vocabulary: the greatest word id. hidden: E of queries and rows. words: the most that a caption is decoded to.
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
        dropout: float,
        words: int,
    ) -> None:
        super().__init__()
        self.words, self.sizes = words, (hidden, lstm)
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

    def loss(self, queries: Tensor, view: View, rows: Tensor, levels: Levels, captions: Tensor) -> Tensor:
        """Return the mean over captions of their mean negative log likelihood per word, their end being one (nats).

        captions: (Q, W) word ids, 0 after the last, one for each query; at each word the true one before it is given.
        """
        lengths = (captions > 0).sum(dim=1)
        captions = captions[:, : int(lengths.max())]
        seen, state = self._begin(queries, view, rows, levels)
        outputs = []
        for word in self.of_word(self.embed(functional.pad(captions, (1, 0)))).unbind(1):
            state = self._step(word, state, seen)
            outputs.append(state[0])
        logits = self.logits(self.dropout(torch.stack(outputs, dim=1)))
        targets = functional.pad(captions, (0, 1))
        costs = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="none").view_as(targets)
        counted = torch.arange(targets.shape[1], device=targets.device) <= lengths[:, None]
        return ((costs * counted).sum(dim=1) / (lengths + 1)).mean()

    def decode(self, queries: Tensor, view: View, rows: Tensor, levels: Levels) -> tuple[Tensor, Tensor]:
        """Return (Q, W) ids of the likeliest words, 0 after the last, and (Q,) sums of their log likelihoods.

        W is the length of the longest caption, at most ``words``; the end is not counted.
        """
        seen, state = self._begin(queries, view, rows, levels)
        word = torch.zeros(len(queries), dtype=torch.long, device=queries.device)
        going, total, found = word == 0, queries.new_zeros(len(queries)), [word[:, None][:, :0]]
        for _ in range(self.words):
            state = self._step(self.of_word(self.embed(word)), state, seen)
            likelihood, word = self.logits(state[0]).log_softmax(dim=1).max(dim=1)
            going = going & (word > 0)
            if not going.any():
                break
            word, total = word * going, total + likelihood * going
            found.append(word[:, None])
        return torch.cat(found, dim=1), total

    def _begin(self, queries: Tensor, view: View, rows: Tensor, levels: Levels) -> tuple[Seen, tuple[Tensor, Tensor]]:
        value = self.value(rows)
        seen = Seen(queries, self.of_query(queries), view, torch.cat((value, self.compare(value)), dim=1), levels)
        start = queries.new_zeros(len(queries), self.sizes[1])
        return seen, (start, start)

    def _step(self, word: Tensor, state: tuple[Tensor, Tensor], seen: Seen) -> tuple[Tensor, Tensor]:
        """Return the state (output, cell) after words, of which (Q, 4 lstm) is what they add to the gates."""
        output, cell = state
        locations = self.locations(torch.cat((output, seen.queries), dim=1), seen.view)
        row, share = (each.flatten(1, -2) for each in seen.levels.neighbours(locations))
        sampled = (functional.embedding(row, seen.rows) * share[..., None]).sum(dim=-2)
        value, compared = sampled[..., : self.sizes[0]], sampled[..., self.sizes[0] :]
        weight = self.weight((compared + self.compare_state(output)[:, None]).tanh()).softmax(dim=1)
        gates = word + seen.gates + self.of_state(torch.cat(((weight * value).sum(dim=1), output), dim=1))
        into, kept, new, out = gates.chunk(4, dim=1)
        cell = kept.sigmoid() * cell + into.sigmoid() * new.tanh()
        return out.sigmoid() * cell.tanh(), cell

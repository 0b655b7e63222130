"""The text decoder of HiREST's joint model, which is CLIP4Caption's, and its beam search.

Shapes: N steps with S encoded frames of size E; V word ids.
"""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepline.models.hirest_joint_config import CLS, PAD, SEP, JointConfig
from stepline.models.hirest_joint_layers import EPS, OFFSET, Attention, FeedForward, Memory, start


class Written(NamedTuple):
    """N captions in training form, (N, words) each.

    read: ``CLS`` and the ids of the caption. follows: the id after each of them, ``SEP`` after the last. Both are
    padded with ``PAD``, which is also a target. there: False for padding in ``read``.
    """

    read: Tensor
    follows: Tensor
    there: Tensor


class Found(NamedTuple):
    """The results of beam search: k hypotheses for each of N captions, best first.

    ids: (N, k, words), after ``CLS``, -1 after the last step. scores: (N, k), sums of log likelihoods. steps: (N,), the
    numbers of steps. done: (N,), whether the best hypothesis is complete.
    """

    ids: Tensor
    scores: Tensor
    steps: Tensor
    done: Tensor


class Layer(nn.Module):
    """Words attend to words, then to frames."""

    def __init__(self, config: JointConfig) -> None:
        super().__init__()
        self.among, self.attention, self.feed_forward = Attention(config), Attention(config), FeedForward(config)

    def forward(self, words: Tensor, memory: Memory, frames: Memory, mask: Tensor | None) -> Tensor:
        """Return (N, W, E) rows; mask: of words, as in ``Attention``."""
        offset = words.new_full((1, 1, 1, frames.keys.shape[2]), OFFSET)
        result: Tensor = self.feed_forward(self.attention(self.among(words, memory, mask), frames, offset))
        return result


class Decoder(nn.Module):
    """An autoregressive decoder of words from frames."""

    def __init__(self, config: JointConfig) -> None:
        super().__init__()
        self.words = nn.Embedding(config.vocabulary, config.hidden)
        self.positions = nn.Embedding(config.word_positions, config.hidden)
        self.norm = nn.LayerNorm(config.hidden, eps=EPS)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.transform = nn.Linear(config.hidden, config.hidden)
        self.transform_norm = nn.LayerNorm(config.hidden, eps=EPS)
        self.bias = nn.Parameter(torch.zeros(config.vocabulary))
        self.apply(start)

    def forward(self, frames: Tensor, read: Tensor, there: Tensor) -> Tensor:
        """Return the (N, W, V) logits of the next word after each word; see ``Written``. frames: (N, S, E)."""
        places = torch.arange(read.shape[1], device=read.device)
        mask = (there[:, None] & (places <= places[:, None]))[:, None]
        rows = self._embed(read, places)
        for layer in self._stack():
            rows = layer(rows, layer.among.memory(rows), layer.attention.memory(frames), mask)
        return self._logits(rows)

    @torch.inference_mode()
    def search(self, frames: Tensor, beams: int, words: int) -> Found:
        """Return the captions of (N, S, E) frames, of at most ``words`` words including the end.

        Each step keeps the k best continuations, with ties in the order of ``torch.topk``. A caption is done when its
        best hypothesis is complete. As in the release, other hypotheses continue beyond their ends until then, and
        scores are not divided by length.
        """
        n, device = len(frames), frames.device
        ids = torch.full((n, beams, words), -1, device=device)
        scores = frames.new_zeros(n, beams)
        steps = torch.full((n,), words, device=device)
        done = torch.zeros(n, dtype=torch.bool, device=device)
        seen = [layer.attention.memory(frames) for layer in self._stack()]
        said = [Memory(each.keys[:, :, :0], each.values[:, :, :0]) for each in seen]
        going, hypotheses = torch.arange(n, device=device), ids.new_zeros(n, 1, 0)
        best, word = frames.new_zeros(n, 1), torch.full((n, 1), CLS, device=device)
        for step in range(words):
            rows = self._embed(word.view(-1, 1), torch.tensor([step], device=device))
            for number, layer in enumerate(self._stack()):
                said[number] = _joined(said[number], layer.among.memory(rows))
                rows = layer(rows, said[number], seen[number], None)
            likelihoods = self._logits(rows).log_softmax(dim=2).view(*word.shape, len(self.bias))
            best, flat = (best[..., None] + likelihoods).flatten(1).topk(beams)
            origin, word = flat // likelihoods.shape[2], flat % likelihoods.shape[2]
            before = hypotheses.gather(1, origin[..., None].expand(-1, -1, step))
            hypotheses = torch.cat((before, word[..., None]), dim=2)
            ended = word[:, 0] == SEP
            now = ended | (step == words - 1)
            ids[going[now], :, : step + 1], scores[going[now]] = hypotheses[now], best[now]
            steps[going[ended]], done[going[ended]] = step + 1, True
            if ended.all():
                break
            first = torch.arange(len(going), device=device)[:, None] * likelihoods.shape[1]
            kept = (first + origin)[~ended].flatten()
            going, hypotheses, best, word = (each[~ended] for each in (going, hypotheses, best, word))
            said, seen = ([Memory(each.keys[kept], each.values[kept]) for each in of] for of in (said, seen))
        return Found(ids, scores, steps, done)

    def _stack(self) -> list[Layer]:
        return cast(list[Layer], [*self.layers])

    def _embed(self, words: Tensor, places: Tensor) -> Tensor:
        rows: Tensor = self.dropout(self.norm(self.words(words) + self.positions(places)))
        return rows

    def _logits(self, rows: Tensor) -> Tensor:
        rows = self.transform_norm(functional.gelu(self.transform(rows)))
        return functional.linear(rows, self.words.weight, self.bias)


def written(captions: Sequence[Sequence[int]], words: int) -> Written:
    """Return captions in training form, cut to their first ``words`` - 1 ids; see ``Written``."""
    cut = [list(caption[: words - 1]) for caption in captions]
    length = torch.tensor([len(caption) for caption in cut])
    filled = [caption + [PAD] * (words - len(caption)) for caption in cut]
    ids = torch.tensor(filled, dtype=torch.int64).view(-1, words)
    place = torch.arange(words)
    read = functional.pad(ids[:, :-1], (1, 0), value=CLS)
    return Written(read, torch.where(place == length[:, None], SEP, ids), place <= length[:, None])


def until_end(ids: Sequence[int]) -> list[int]:
    """Return the words of a hypothesis before its first end or padding."""
    for place, word in enumerate(ids):
        if word in (SEP, PAD):
            return list(ids[:place])
    return list(ids)


def _joined(first: Memory, second: Memory) -> Memory:
    return Memory(torch.cat((first.keys, second.keys), dim=2), torch.cat((first.values, second.values), dim=2))

"""ProcNet: the steps of a video from scored anchors and a sequence model over them.

Zhou, Xu and Corso, "Towards Automatic Learning of Procedures from Web Instructional Videos", AAAI 2018; Batra et al.
(arXiv 2209.15501) compare with their own PyTorch version. Differences between that version, the authors' Lua code and
this module: the two directions of the context are aligned (not in Lua); the end of the sequence is trained (not in
PyTorch); the content of a segment is the mean of its own rows (in PyTorch, their sum over all rows of the video).
Samples are drawn among all proposals; both codes draw them kernel by kernel, PyTorch without a limit. As in both codes,
the loss of offsets is computed on the resulting boundaries, in rows; here it is averaged over positives (in PyTorch,
over all proposals).
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepline.models.matching import temporal_order


@dataclass(frozen=True, kw_only=True)
class ProcNetConfig:
    """Sizes and training options.

    feature_dim: D, the size of a row of features. length: L, rows of a video. hidden: the size of the recurrent network
    over rows, per direction, and of the anchors' input. kernels: anchor lengths in rows: the first, the step, and the
    number. pool: the numbers of kernels and rows that form one cell of the sequence. offset_scale: the maximum offset,
    of a centre in anchor lengths, of a length as a logarithm (1 in PyTorch, 0.1 in Lua). dropout: before the choice of
    a cell. max_segments: the maximum number of decoded segments. positives, negatives: samples per video; negatives
    replace missing positives. positive_iou, negative_iou: a positive has at least the former IoU with some segment, a
    negative less than the latter with all segments.
    """

    feature_dim: int = 512
    length: int = 500
    hidden: int = 512
    kernels: tuple[int, int, int] = (3, 8, 16)
    pool: tuple[int, int] = (8, 5)
    offset_scale: float = 1.0
    dropout: float = 0.5
    max_segments: int = 16
    positives: int = 100
    negatives: int = 100
    positive_iou: float = 0.8
    negative_iou: float = 0.2


class Proposals(NamedTuple):
    """Proposals of each kernel at each row: logits, (K, L), and segments, (K, L, 2) starts and ends in rows, 0 to L.

    If a kernel does not fit into the video, the logit is 0 and the segment is the anchor itself, as in both codes.
    """

    logits: Tensor
    segments: Tensor


class ProcNet(nn.Module):
    """The network; a batch is one video."""

    def __init__(self, config: ProcNetConfig) -> None:
        """Raise ValueError if a kernel is longer than the video."""
        super().__init__()
        first, step, count = config.kernels
        self.config, self.sizes = config, [first + step * place for place in range(count)]
        if self.sizes[-1] > config.length:
            raise ValueError(f"a kernel of {self.sizes[-1]} rows does not fit into a video of {config.length}")
        self.context = nn.LSTM(config.feature_dim, config.hidden, batch_first=True, bidirectional=True)
        self.project = nn.Linear(config.feature_dim + 2 * config.hidden, config.hidden)
        self.anchors = nn.ModuleList(nn.Conv1d(config.hidden, 3, size) for size in self.sizes)
        self.cells = -(-count // config.pool[0]) * -(-config.length // config.pool[1])
        self.place = nn.Embedding(self.cells + 1, self.cells)
        self.content = nn.Linear(config.feature_dim, self.cells)
        self.sequence = nn.LSTM(3 * self.cells, self.cells, batch_first=True)
        self.dropout = nn.Dropout(config.dropout)
        self.choice = nn.Linear(self.cells, self.cells + 1)

    def forward(self, features: Tensor) -> Proposals:
        """Return all proposals for (1, L, D) features; raise ValueError for any other shape."""
        length, scale = self.config.length, self.config.offset_scale
        if features.shape != (1, length, self.config.feature_dim):
            expected = (1, length, self.config.feature_dim)
            raise ValueError(f"features of one video must be {expected}, not {tuple(features.shape)}")
        context, _ = self.context(features)
        seen = self.project(torch.cat([features, context], dim=2)).relu().transpose(1, 2)
        found = [
            functional.pad(anchor(seen)[0], ((size - 1) // 2, size // 2))
            for anchor, size in zip(self.anchors, self.sizes, strict=True)
        ]
        logits, centre, extent = torch.stack(found, dim=1)
        size = torch.tensor(self.sizes, device=features.device)[:, None]
        row = torch.arange(length, device=features.device) + 0.5
        middle, half = row + scale * centre.tanh() * size, size * (scale * extent.tanh()).exp() / 2
        return Proposals(logits, torch.stack([middle - half, middle + half], dim=2))

    def loss(self, features: Tensor, segments: Tensor) -> Tensor:
        """Return the unweighted sum of the losses of scores, boundaries and sequence.

        features: (1, L, D). segments: (n, 2), n at least 1, starts and ends as fractions of the duration, in any order.
        Samples are drawn with torch's global generator. Raises ValueError for any other shape.
        """
        if segments.ndim != 2 or segments.shape[1] != 2 or not len(segments):
            raise ValueError(f"segments must be (n, 2), n from 1, not {tuple(segments.shape)}")
        proposals = self(features)
        truth = segments[temporal_order(segments)] * self.config.length
        scores, cells = self._pooled(proposals)
        nearest = (cells - truth[:, None]).square().sum(dim=2).argmin(dim=1)
        end = nearest.new_tensor([self.cells])
        inputs = self._inputs(features, scores, cells, torch.cat([end, nearest]))
        hidden, _ = self.sequence(inputs)
        sequence = functional.cross_entropy(self.choice(self.dropout(hidden[0])), torch.cat([nearest, end]))
        return self._anchor_loss(proposals, truth) + sequence

    @torch.no_grad()
    def predict(self, features: Tensor) -> tuple[Tensor, Tensor]:
        """Return (k, 2) segments, as fractions of the duration, and their (k,) scores, in the order of decoding.

        features: (1, L, D). Decoding is greedy: the most likely next cell, until the end symbol or ``max_segments``. A
        cell represents its proposal with the highest score. Ties go to the first kernel, then row, then the end symbol.
        A cell may be chosen repeatedly. Segments outside the video are dropped. Dropout is never applied.
        """
        scores, cells = self._pooled(self(features))
        chosen: list[int] = []
        previous, state = self.cells, None
        while len(chosen) < self.config.max_segments:
            inputs = self._inputs(features, scores, cells, torch.tensor([previous], device=features.device))
            hidden, state = self.sequence(inputs, state)
            previous = int(self.choice(hidden[0, 0]).argmax())
            if previous == self.cells:
                break
            chosen.append(previous)
        segments = cells[chosen].clamp(0, self.config.length) / self.config.length
        there = segments[:, 0] < segments[:, 1]
        return segments[there], scores[chosen][there]

    def _pooled(self, proposals: Proposals) -> tuple[Tensor, Tensor]:
        """Return the (C,) scores in [0, 1] and (C, 2) segments of the best proposal in each cell, without gradient."""
        pooled = functional.max_pool2d(
            proposals.logits.sigmoid()[None], self.config.pool, ceil_mode=True, return_indices=True
        )
        scores, index = (each.flatten() for each in pooled)
        return scores, proposals.segments.detach().flatten(0, 1)[index]

    def _inputs(self, features: Tensor, scores: Tensor, cells: Tensor, previous: Tensor) -> Tensor:
        """Return the (1, T, 3C) inputs of the sequence after the (T,) previous cells; C means no previous cell."""
        row = torch.arange(self.config.length, device=features.device)
        start, end = torch.cat([cells, cells.new_tensor([[0, self.config.length]])])[previous, :, None].unbind(1)
        within = ((start < row + 1) & (row < end)).to(features.dtype)
        content = within @ features[0] / within.sum(dim=1, keepdim=True).clamp(min=1)
        parts = [scores.expand(len(previous), -1), self.place(previous), self.content(content)]
        return torch.cat(parts, dim=1)[None]

    def _anchor_loss(self, proposals: Proposals, truth: Tensor) -> Tensor:
        logits, found = proposals.logits.flatten(), proposals.segments.flatten(0, 1)
        overlap, whose = _iou(found.detach(), truth).max(dim=1)
        inside = (found[:, 0] >= 0) & (found[:, 1] <= self.config.length)
        positive = (inside & (overlap >= self.config.positive_iou)).nonzero()[:, 0]
        negative = (inside & (overlap < self.config.negative_iou)).nonzero()[:, 0]
        for_score = _drawn(positive, self.config.positives)
        against = _drawn(negative, self.config.positives + self.config.negatives - len(for_score))
        drawn = torch.cat([for_score, against])
        target = (torch.arange(len(drawn), device=drawn.device) < len(for_score)).to(logits.dtype)
        score = functional.binary_cross_entropy_with_logits(logits[drawn], target, reduction="sum")
        boundary = functional.smooth_l1_loss(found[positive], truth[whose[positive]], reduction="sum")
        return score / max(1, len(drawn)) + boundary / max(1, len(positive))


def _drawn(places: Tensor, count: int) -> Tensor:
    return places[torch.randperm(len(places))[:count].to(places.device)]


def _iou(found: Tensor, truth: Tensor) -> Tensor:
    """Return the (P, n) intersections over unions of (P, 2) and (n, 2) segments."""
    start, end = found[:, None].unbind(2)
    both = (torch.minimum(end, truth[:, 1]) - torch.maximum(start, truth[:, 0])).clamp(min=0)
    return both / (end - start + truth[:, 1] - truth[:, 0] - both)

"""Long-term feature bank: heads that attend to a window's segments (Spacewalk-18, Eq. 7 and 8, Appendix E.3; Wu et al.,
CVPR 2019).

Details that the paper leaves open are named defaults below. Positions are Vaswani et al.'s sinusoids of a segment's
index in the window, scaled to unit length like a normalised block. The segments of a batch are gathered in parts from
the bank of each recording, on the device.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stepline.models.context import Segments, n_segments, rows_of
from stepline.models.linear import step_loss, step_tensors
from stepline.models.training import fit_head, loaded, restore

PART = 64
"""The number of windows in memory at once: with windows of 20 min, 59 MB per layer."""
LATENT, BLOCKS, DROPOUT = 512, 2, 0.2
"""For NL: the paper's dimension and number of non-local blocks, and Wu et al.'s dropout."""
LAYERS, HEADS, TF_DROPOUT = 2, 8, 0.1
"""For TF: the paper's number of layers; heads and dropout are Vaswani et al.'s. The feed-forward layers have the width
of the features, which the paper calls the hidden size. The output at the query's token is the feature of the window."""
Head = Literal["nl", "tf"]


@dataclass(frozen=True, kw_only=True)
class Clips:
    """Clips to match with the steps of their own recording; see ``linear.Matching``.

    banks: one per recording. owner: (N,), the recording of each clip. times_s: (N,), their centres. label: (N,), in
    1..K. steps: for each recording, (K, E) features of its steps.
    """

    banks: list[Segments]
    owner: NDArray[np.int64]
    times_s: NDArray[np.float64]
    label: NDArray[np.int64]
    steps: list[NDArray[np.float32]]


class NonLocal(nn.Module):
    """A block that adds attention over the context to the query (Fig. A8); it is initialised to add nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.output = (nn.Linear(LATENT, LATENT) for _ in range(4))
        self.norm = nn.LayerNorm(LATENT)
        self.dropout = nn.Dropout(DROPOUT)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, query: Tensor, context: Tensor, there: Tensor) -> Tensor:
        """Return the (B, 512) queries, given (B, M, 512) contexts and their mask, (B, M)."""
        scores = torch.einsum("bd,bmd->bm", self.query(query), self.key(context)) / math.sqrt(LATENT)
        weights = scores.masked_fill(~there, -1e9).softmax(dim=1) * there  # 0 without any context
        seen = torch.einsum("bm,bmd->bd", weights, self.value(context))
        added: Tensor = self.dropout(self.output(self.norm(seen).relu()))
        return query + added


class NonLocalHead(nn.Module):
    """LFB NL (Eq. 7) and the linear map G."""

    def __init__(self, dimension: int, steps: int) -> None:
        super().__init__()
        self.project = nn.Linear(dimension, LATENT)
        self.dropout = nn.Dropout(DROPOUT)
        self.blocks = nn.ModuleList(NonLocal() for _ in range(BLOCKS))
        self.output = nn.Linear(dimension + LATENT, steps)

    def forward(self, segments: Tensor, there: Tensor) -> Tensor:
        """Return (B, E) features of (B, M, D) segments, of which those that are there, (B, M), count."""
        middle = segments.shape[1] // 2
        latent = self.dropout(self.project(segments + positions(segments)))
        others = there.clone()
        others[:, middle] = False
        query = latent[:, middle]
        for block in self.blocks:
            query = block(query, latent, others)
        mapped: Tensor = self.output(torch.cat([segments[:, middle], query], dim=1))
        return mapped


class TransformerHead(nn.Module):
    """LFB TF (Eq. 8) and the linear map G."""

    def __init__(self, dimension: int, steps: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(dimension, HEADS, dimension, TF_DROPOUT, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)
        self.output = nn.Linear(dimension, steps)

    def forward(self, segments: Tensor, there: Tensor) -> Tensor:
        """Return (B, E) features of (B, M, D) segments, of which those that are there, (B, M), count."""
        found = self.encoder(segments + positions(segments), src_key_padding_mask=~there)
        mapped: Tensor = self.output(found[:, segments.shape[1] // 2])
        return mapped


HEADS_OF: dict[Head, type[NonLocalHead] | type[TransformerHead]] = {"nl": NonLocalHead, "tf": TransformerHead}


def positions(segments: Tensor) -> Tensor:
    """Return the (M, D) positional encodings of (B, M, D) segments, each of unit length."""
    _, count, dimension = segments.shape
    place = torch.arange(count, dtype=segments.dtype, device=segments.device)[:, None]
    column = torch.arange(dimension, device=segments.device)
    angle = place / 10_000 ** ((column - column % 2) / dimension)
    encoding = torch.where(column % 2 == 0, angle.sin(), angle.cos())
    scaled: Tensor = encoding / encoding.norm(dim=1, keepdim=True)
    return scaled


class Windows:
    """The segments of N windows, gathered on request."""

    def __init__(
        self,
        banks: list[Segments],
        owner: NDArray[np.int64],
        times_s: NDArray[np.float64],
        context_s: float,
        device: str,
    ) -> None:

        def on(array: NDArray[Any] | None) -> Any:
            return None if array is None else torch.tensor(array).to(device)

        self.device = device
        self.dimension = banks[0].shape[1]
        self.normalise = [bank.normalise for bank in banks]
        self.banks = [[(on(block.vectors), on(block.index)) for block in bank.blocks] for bank in banks]
        rows = np.empty((len(owner), n_segments(context_s)), np.int64)
        for number, bank in enumerate(banks):
            rows[owner == number] = rows_of(times_s[owner == number], context_s, bank.shape[0])
        self.rows, self.owner = torch.from_numpy(rows), torch.from_numpy(owner)

    def __call__(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Return the (B, M, D) segments of some windows, 0 for excluded ones, and their mask, (B, M)."""
        rows, owner = self.rows[windows].to(self.device), self.owner[windows].to(self.device)
        there = rows >= 0
        segments = torch.empty(*rows.shape, self.dimension, device=self.device)
        for number in sorted({*owner.tolist()}):
            whose = owner == number
            segments[whose] = self._of(number, rows[whose].clamp(min=0))
        return segments * there[..., None], there

    def _of(self, number: int, rows: Tensor) -> Tensor:
        parts = []
        for vectors, index in self.banks[number]:
            part = vectors[rows if index is None else index[rows]].float()
            if self.normalise[number]:
                part = part / part.norm(dim=-1, keepdim=True).clamp(min=1e-12)
            parts.append(part)
        return torch.cat(parts, dim=-1)


def fit_lfb(
    head: Head,
    train: Clips,
    val: Clips,
    path: Path,
    *,
    context_s: float,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    seed: int,
    device: str = "cpu",
) -> None:
    """Train a head and its linear map G with Eq. 1, and write them to ``path``; see ``fit_head``.

    A killed fit resumes after its last epoch. Raises ConfigError if the window is not a whole number of segments.
    """
    windows, held_out = (Windows(data.banks, data.owner, data.times_s, context_s, device) for data in (train, val))
    owner, target, *steps = (each.to(device) for each in step_tensors(train.owner, train.label, train.steps))
    val_owner, val_target, *val_steps = (each.to(device) for each in step_tensors(val.owner, val.label, val.steps))

    def losses(model: nn.Module, batch: Tensor) -> Iterator[Tensor]:
        for part in torch.split(batch, PART):
            loss = step_loss(model(*windows(part)), owner[part], target[part], *steps)
            yield loss * (len(part) / len(batch))

    def val_loss(model: nn.Module) -> float:
        parts = torch.split(torch.arange(len(val.owner)), PART)
        losses = (step_loss(model(*held_out(part)), val_owner[part], val_target[part], *val_steps) for part in parts)
        return sum(float(loss) * len(part) for loss, part in zip(losses, parts, strict=True)) / len(val.owner)

    fit_head(
        lambda: HEADS_OF[head](train.banks[0].shape[1], train.steps[0].shape[1]),
        losses,
        val_loss,
        len(train.owner),
        path,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        device=device,
        resume=_digest(train, val, context_s),
    )


def apply_lfb(
    head: Head, path: Path, bank: Segments, times_s: NDArray[np.float64], *, context_s: float, device: str = "cpu"
) -> NDArray[np.float32]:
    """Return the (N, E) features of N windows of a recording with the checkpoint in ``path``.

    Raises StoreError if it is damaged, ConfigError if the window is not a whole number of segments.
    """
    torch.set_num_threads(1)
    windows = Windows([bank], np.zeros(len(times_s), np.int64), times_s, context_s, device)
    with loaded(path) as state:
        model = restore(HEADS_OF[head](bank.shape[1], len(state["output.bias"])), state, device)
    with torch.inference_mode():
        parts = [model(*windows(part)).cpu().numpy() for part in torch.split(torch.arange(len(times_s)), PART)]
    return np.concatenate([np.zeros((0, len(state["output.bias"])), np.float32), *parts])


def _digest(train: Clips, val: Clips, context_s: float) -> str:
    """Return a digest of the data of a fit."""
    content = hashlib.blake2b(f"{context_s} {torch.__version__}".encode(), digest_size=16)
    for data in (train, val):
        blocks = [block for bank in data.banks for block in bank.blocks]
        arrays: list[NDArray[Any] | None] = [data.owner, data.times_s, data.label, *data.steps]
        arrays += [array for block in blocks for array in (block.vectors, block.index)]
        for array in arrays:
            if array is None:
                continue
            content.update(f"{array.shape} {array.dtype}".encode())
            content.update(np.ascontiguousarray(array).data)
    return content.hexdigest()

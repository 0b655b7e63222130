"""Training of UMT, with one sample for each step with segments in a video."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from stepline.errors import ConfigError
from stepline.models.grounding import GroundedVideo, Rows, gather
from stepline.models.training import fit_head
from stepline.models.umt import Queries, Umt
from stepline.models.umt_config import UmtConfig
from stepline.models.umt_moments import Targets, targets

POOL = 16
"""The number of batches whose samples are sorted by length together."""


class Sample(NamedTuple):
    """A step and its (n, 2) segments in a video, in seconds."""

    video: int
    step: int
    segments_s: Tensor


class Samples:
    """The steps with segments, for each video in the order of its article.

    words: for each step, (L, E) vectors of its words, or one vector of its sentence. Rows are read when a batch needs
    them. Raises ValueError if a step with segments has no words.
    """

    def __init__(
        self, videos: Sequence[GroundedVideo], words: Sequence[Rows], config: UmtConfig, device: str = "cpu"
    ) -> None:
        self.videos, self.words, self.config, self.device = videos, words, config, device
        self.samples = [
            Sample(number, step, torch.from_numpy(video.segments_s[video.steps == step]).float())
            for number, video in enumerate(videos)
            for step in video.candidates.tolist()
            if (video.steps == step).any()
        ]
        self.lengths = torch.tensor([len(videos[each.video].rows) for each in self.samples])
        if silent := sorted({each.step for each in self.samples if not len(words[each.step])}):
            raise ValueError(f"step {silent[0]} has no words")

    def loss(self, model: Umt, batch: Tensor) -> Tensor:
        """Return the loss on a batch of sample indices."""
        queries, saliency, learned = self.batch(batch)
        return torch.stack([*model.losses(model(queries), queries.there, saliency, learned).values()]).sum()

    def batch(self, numbers: Tensor) -> tuple[Queries, Tensor, Targets]:
        """Return samples, padded to the longest, their (B, T) labels of saliency, and their targets."""
        samples = [self.samples[number] for number in numbers.tolist()]
        length = int(self.lengths[numbers].max())
        rows, there = gather([self.videos[each.video].rows for each in samples], length)
        queries = Queries(rows, there, *spoken([self.words[each.step] for each in samples]))
        segments_s = [each.segments_s for each in samples]
        learned = targets(segments_s, length, self.config)
        saliency = there.float()
        if self.config.saliency == "inside":
            middle_s = (torch.arange(length) + 0.5) * self.config.unit
            inside = [((of[:, :1] <= middle_s) & (middle_s < of[:, 1:])).any(dim=0) for of in segments_s]
            saliency *= torch.stack(inside)
        moved = Queries(*(each.to(self.device) for each in queries))
        return moved, saliency.to(self.device), learned.to(self.device)


def spoken(words: Sequence[Rows]) -> tuple[Tensor, Tensor]:
    """Return the words of queries, (B, L, E) float32, padded with 0, and their mask, (B, L)."""
    return gather(words, max(map(len, words)))


def fit_umt(
    config: UmtConfig,
    videos: Sequence[GroundedVideo],
    path: Path,
    *,
    words: Sequence[Rows],
    epochs: int = 200,
    batch_size: int = 64,
    learning_rate: float = 1e-3,
    weight_decay: float = 1e-4,
    seed: int = 0,
    device: str = "cpu",
    resume: str = "",
    what: str = "umt",
) -> None:
    """Train the network and write its last epoch to ``path``; the defaults are those of HT-Step (App. B).

    words: see ``Samples``. Steps without a segment in a video are not samples, because UMT has no target for them. As
    in the release, the learning rate is constant and gradients are not clipped. weight_decay: of Adam, added to the
    gradient. Batches contain samples of similar length, see ``bucketed``. resume: see ``fit_head``. Raises the errors
    of ``fit_head`` and ``Samples``, and ConfigError if there are no samples.
    """
    samples = Samples(videos, words, config, device)
    if not samples.samples:
        raise ConfigError(f"{what}: no video has a segment of a step of its article; take more videos of train")
    fit_head(
        lambda: Umt(config),
        lambda model, batch: [samples.loss(model, batch)],
        None,
        len(samples.samples),
        path,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        device=device,
        resume=resume and f"{resume} {config} {weight_decay}",
        weight_decay=weight_decay,
        batches=bucketed(samples.lengths, batch_size, seed),
        fused=True,
        what=what,
    )


def bucketed(lengths: Tensor, batch_size: int, seed: int) -> Iterator[Tensor]:
    """Yield endless batches of indices 0..N - 1 whose samples have similar ``lengths``, (N,).

    Each epoch is a permutation. Groups of ``POOL`` batches are sorted by length (stable) and split into batches, which
    are then shuffled. One batch per epoch may be smaller.
    """
    generator = torch.Generator().manual_seed(seed)
    while True:
        drawn = torch.randperm(len(lengths), generator=generator)
        pools = [pool[lengths[pool].argsort(stable=True)] for pool in torch.split(drawn, POOL * batch_size)]
        batches = [batch for pool in pools for batch in torch.split(pool, batch_size)]
        for number in torch.randperm(len(batches), generator=generator).tolist():
            yield batches[number]

"""Training of HiREST's joint model on its three tasks, each update by a batch of one of them."""

import itertools
import math
import random
from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stepline.errors import ConfigError
from stepline.models.hirest_joint import Joint, Videos
from stepline.models.hirest_joint_captions import Written, written
from stepline.models.hirest_joint_config import JointConfig
from stepline.models.hirest_joint_frames import intervals, slot_frames
from stepline.models.hirest_joint_release import load_clip4caption
from stepline.models.hirest_joint_segments import between
from stepline.models.training import fit_head, shuffled

Rows = NDArray[np.floating[Any]]
Mixing = Literal["proportional", "alternating"]

LOSSES: tuple[Callable[..., Tensor], ...] = (Joint.moment_loss, Joint.segment_loss, Joint.caption_loss)
"""Of the tasks, by their numbers."""
VALIDATED = (0, 2)
"""The tasks whose losses decide which epoch is kept."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A video with its query and what is learned of it, all in frames, one a second, numbered from 0.

    features: (T, D). query: (Q,). speech: (T, A), 0 where nothing is said; without ``audio`` it is not read.
    moment: its first and last frame. boundaries: those of its steps, as ``hirest_joint_frames.boundaries`` returns
    them. steps: the first and last frame of each. captions: of each step, word ids without beginning and end.
    """

    features: Rows
    query: Rows
    speech: Rows | None
    moment: tuple[int, int]
    boundaries: Sequence[int] = ()
    steps: Sequence[tuple[int, int]] = ()
    captions: Sequence[Sequence[int]] = ()


class Tables:
    """What is learned of videos, numbered from 0: all moments, then intervals between boundaries, then captions.

    The rows of all videos are in one table, in the type that they were given in, with a row of zeros after them; a
    batch is gathered from it. Raises ValueError where an example's parts do not fit together.
    """

    def __init__(self, examples: Sequence[Example], config: JointConfig, device: str = "cpu") -> None:
        for number, each in enumerate(examples):
            n, frames = len(each.features), [*each.moment, *each.boundaries, *itertools.chain(*each.steps)]
            if not 0 <= min(frames) <= max(frames) < n:
                raise ValueError(f"example {number} has {n} frames, numbered from 0, and not all of {frames}")
            if config.audio and (each.speech is None or len(each.speech) != n):
                raise ValueError(f"example {number} has {n} frames, and speech of another length or none")
            if len(each.captions) != len(each.steps):
                raise ValueError(f"example {number} has {len(each.steps)} steps and {len(each.captions)} captions")
        self.device, self.slots = device, config.slots
        self.lengths = torch.tensor([len(each.features) for each in examples])
        self.first = self.lengths.cumsum(0) - self.lengths
        self.features = self._table([each.features for each in examples])
        self.speech = (
            self._table([each.speech for each in examples if each.speech is not None]) if config.audio else None
        )
        self.query = torch.from_numpy(np.stack([each.query for each in examples])).float().to(device)
        self.moments = torch.tensor([each.moment for each in examples])
        learned = [
            (number, part) for number, of in enumerate(examples) for part in intervals(of.boundaries, of.moment[1])
        ]
        most = max((len(part.previous) for _, part in learned), default=0)
        parts = [
            [video, part.start, part.last, part.target, *part.previous, *[-1] * (most - len(part.previous))]
            for video, part in learned
        ]
        self.intervals = torch.tensor(parts, dtype=torch.int64).view(-1, 4 + most)
        steps = [(number, *step) for number, of in enumerate(examples) for step in of.steps]
        self.steps = torch.tensor(steps, dtype=torch.int64).view(-1, 3)
        self.frames = slot_frames(self.steps[:, 1:], config)
        self.captions = written([caption for each in examples for caption in each.captions], config.words)
        self.sizes = len(self.moments), len(self.intervals), len(self.steps)

    def loss(self, model: Joint, batch: Tensor) -> Tensor:
        """Return the loss on a batch of numbers, all of one task."""
        task = bisect([*itertools.accumulate(self.sizes)], int(batch[0]))
        return LOSSES[task](model, *self.given(task, batch - sum(self.sizes[:task])))

    def given(self, task: int, batch: Tensor) -> tuple[Any, ...]:
        """Return what the loss of a task is given of a batch, whose numbers are those among the task's own."""
        return (self._moments, self._intervals, self._captions)[task](batch)

    def _moments(self, batch: Tensor) -> tuple[Any, ...]:
        return self.videos(batch), self.moments[batch].to(self.device)

    def _intervals(self, batch: Tensor) -> tuple[Any, ...]:
        video, start, last, target, *_ = self.intervals[batch].unbind(1)
        previous, videos = self.intervals[batch, 4:], self.videos(video)
        n = videos.features.shape[1]
        ends = torch.zeros(len(batch), n + 1, dtype=torch.bool).scatter_(1, previous.where(previous >= 0, n), True)
        return videos, *(each.to(self.device) for each in (between(start, last, n), ends[:, :n], target))

    def _captions(self, batch: Tensor) -> tuple[Any, ...]:
        video = self.steps[batch, 0]
        steps = self._gathered(self.first[video, None] + self.frames[batch], video, torch.full_like(video, self.slots))
        return steps, Written(*(each[batch].to(self.device) for each in self.captions))

    def videos(self, video: Tensor) -> Videos:
        """Return a batch of whole videos, padded with zeros to the longest."""
        lengths = self.lengths[video]
        frame = torch.arange(int(lengths.max()))
        place = torch.where(frame < lengths[:, None], self.first[video, None] + frame, len(self.features) - 1)
        return self._gathered(place, video, lengths)

    def _gathered(self, place: Tensor, video: Tensor, lengths: Tensor) -> Videos:
        place, video, lengths = (each.to(self.device) for each in (place, video, lengths))
        speech = None if self.speech is None else self.speech[place].float()
        return Videos(self.features[place].float(), self.query[video], speech, lengths)

    def _table(self, rows: Sequence[Rows]) -> Tensor:
        return torch.from_numpy(np.concatenate([*rows, np.zeros_like(rows[0][:1])])).to(self.device)


def fit_joint(
    config: JointConfig,
    train: Sequence[Example],
    val: Sequence[Example],
    path: Path,
    *,
    clip4caption: Path | None = None,
    mixing: Mixing = "proportional",
    epochs: int = 50,
    batch_size: int = 5,
    learning_rate: float = 1e-5,
    weight_decay: float = 0.01,
    warm_up: float = 0.1,
    clip: float = 5.0,
    seed: int = 2222,
    device: str = "cpu",
    resume: str = "",
    what: str = "joint",
) -> None:
    """Train the network and write the epoch of the least validation loss to ``path``; by default as released.

    clip4caption: the checkpoint that it begins with, as ``load_clip4caption`` has it; None for none. mixing: see
    ``mixed``. weight_decay: AdamW's; parameters that a task has no part in are left alone by its updates. warm_up: the
    part of all updates over which the learning rate rises from 0, before it falls to 0, both linearly. clip: the
    largest norm of the gradient. The validation loss is that of moments and that of captions, each a mean over batches.
    resume: see ``fit_head``. Raises what ``fit_head``, ``Tables`` and ``load_clip4caption`` raise, and ConfigError
    where no video of ``val`` has steps.
    """
    tables, judged = Tables(train, config, device), Tables(val, config, device)
    if not judged.sizes[-1]:
        raise ConfigError(
            f"{what}: no video of val has steps, and their captions are validated; take more videos of val"
        )
    updates = sum(math.ceil(size / batch_size) for size in tables.sizes)
    rising = int(warm_up * epochs * updates)

    def factor(passed: float) -> float:
        update = round(passed * updates)
        if update < rising:
            return update / rising
        return (epochs * updates - update) / (epochs * updates - rising)

    def val_loss(model: Joint) -> float:
        means = []
        for task in VALIDATED:
            batches = torch.split(torch.arange(judged.sizes[task]), batch_size)
            losses = [float(LOSSES[task](model, *judged.given(task, batch))) for batch in batches]
            means.append(sum(losses) / len(losses))
        return sum(means)

    fit_head(
        lambda: Joint(config) if clip4caption is None else load_clip4caption(clip4caption, config),
        lambda model, batch: [tables.loss(model, batch)],
        val_loss,
        sum(tables.sizes),
        path,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        device=device,
        resume=resume and f"{resume} {mixing} {weight_decay} {warm_up} {clip}",
        weight_decay=weight_decay,
        decoupled=True,
        clip=clip,
        factor=factor,
        steps=updates,
        batches=mixed(tables.sizes, batch_size, mixing, seed),
        fused=True,
        what=what,
    )


def mixed(sizes: Sequence[int], batch_size: int, mixing: Mixing, seed: int) -> Iterator[Tensor]:
    """Yield without end batches of numbers, those of a task after those of the task before it, ``sizes`` of each.

    Each task has permutations of its own, one after another, of which the last batch is what is left. An epoch has as
    many batches as all tasks have together. With ``proportional``, as released, these are all of them, in an order that
    Python's ``Random(e)`` draws in epoch e; with ``alternating`` the tasks take turns, as the paper's "round-robin" can
    be read.
    """
    first = [end - size for end, size in zip(itertools.accumulate(sizes), sizes, strict=True)]
    batches = [shuffled(size, batch_size, seed + task) for task, size in enumerate(sizes)]
    turns = [task for task, size in enumerate(sizes) for _ in range(math.ceil(size / batch_size))]
    for epoch in itertools.count():
        if mixing == "proportional":
            drawn = [*turns]
            random.Random(epoch).shuffle(drawn)
            drawn.reverse()
        else:
            some = sorted({*turns})
            drawn = [some[(epoch * len(turns) + turn) % len(some)] for turn in range(len(turns))]
        for task in drawn:
            yield first[task] + next(batches[task])

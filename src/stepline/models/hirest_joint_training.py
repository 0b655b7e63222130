"""Training of HiREST's joint model on its three tasks; each update uses a batch of one task."""

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
"""The loss of each task, by task number."""
VALIDATED = (0, 2)
"""The tasks whose validation losses select the epoch."""


@dataclass(frozen=True, kw_only=True)
class Example:
    """A video with its query and training targets, in frames, one per second, numbered from 0.

    features: (T, D). query: (Q,). speech: (T, A), 0 in silence; not read without ``audio``. moment: its first and last
    frame. boundaries: of its steps, from ``hirest_joint_frames.boundaries``. steps: first and last frame of each step.
    captions: for each step, word ids without start and end.
    """

    features: Rows
    query: Rows
    speech: Rows | None
    moment: tuple[int, int]
    boundaries: Sequence[int] = ()
    steps: Sequence[tuple[int, int]] = ()
    captions: Sequence[Sequence[int]] = ()


class Tables:
    """The training samples of all videos, numbered from 0: moments, then intervals between boundaries, then captions.

    The rows of all videos are in one table with their original type, followed by a row of zeros; batches are gathered
    from it. Raises ValueError if the parts of an example do not fit together.
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
        """Return the loss on a batch of sample numbers, all of one task."""
        task = bisect([*itertools.accumulate(self.sizes)], int(batch[0]))
        return LOSSES[task](model, *self.given(task, batch - sum(self.sizes[:task])))

    def given(self, task: int, batch: Tensor) -> tuple[Any, ...]:
        """Return the arguments of a task's loss for a batch of numbers, counted within the task."""
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
    """Train the network and write the epoch with the lowest validation loss to ``path``; defaults are the release's.

    clip4caption: the initial checkpoint, see ``load_clip4caption``; None for none. mixing: see ``mixed``. weight_decay:
    of AdamW; the updates of a task do not change parameters that the task does not use. warm_up: the fraction of all
    updates in which the learning rate rises linearly from 0, before it falls linearly to 0. clip: the maximum norm of
    the gradient. The validation loss is the sum of the losses of moments and captions, each a mean over batches.
    resume: see ``fit_head``. Raises the errors of ``fit_head``, ``Tables`` and ``load_clip4caption``, and ConfigError
    if no video of ``val`` has steps.
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

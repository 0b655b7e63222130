"""Training of ActionFormer and ActionFormer-T on crops of videos; the final average is kept, as in the release."""

import copy
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stepline.errors import ConfigError
from stepline.models.actionformer import CENTRE, ActionFormer, in_rows, points
from stepline.models.actionformer_config import ActionFormerConfig
from stepline.models.actionformer_loss import Targets, losses, targets
from stepline.models.grounding import GroundedVideo, gather
from stepline.models.training import blend, loaded, restore, shuffled, train

TRIES = 200
"""The maximum number of crops that are drawn until one contains enough of a segment."""
LEAST_RATE = 1e-8
"""The final learning rate."""


class Batch(NamedTuple):
    """The input of the network and of the losses.

    features: (B, max_length, D). there: (B, max_length), False for padding. learned: the targets. steps: (C,) indices
    of the steps to predict; asked: (B, C), which of them to predict for each video; None for all steps.
    """

    features: Tensor
    there: Tensor
    learned: Targets
    steps: Tensor | None
    asked: Tensor | None


class Samples:
    """Training videos. Rows are read when a batch needs them. Random numbers come from torch's global generator.

    texts: (S, E), the vectors of all steps, for ActionFormer-T. Raises ValueError if the steps of a video are not among
    its candidates, or its candidates not among all steps.
    """

    def __init__(
        self,
        config: ActionFormerConfig,
        videos: Sequence[GroundedVideo],
        texts: NDArray[np.floating[Any]] | None = None,
        device: str = "cpu",
    ) -> None:
        self.config, self.videos, self.device = config, videos, device
        self.texts = None if texts is None else torch.from_numpy(np.asarray(texts, np.float32)).to(device)
        known = config.classes if self.texts is None else len(self.texts)
        if known is None:
            raise ValueError("ActionFormer-T needs the vectors of the steps")
        for number, video in enumerate(videos):
            if video.candidates.max(initial=-1) >= known or not np.isin(video.steps, video.candidates).all():
                raise ValueError(f"video {number} has other steps than its candidates, or than the {known} of all")
        self.points = points(config, config.max_length)
        self.bounds = [torch.from_numpy(in_rows(video.segments_s)).float() for video in videos]

    def batch(self, numbers: Tensor) -> Batch:
        """Return a batch with a crop of each of these videos."""
        rows, bounds, labels = [], [], []
        for number in numbers.tolist():
            video = self.videos[number]
            crop = cropped(self.config, len(video.rows), self.bounds[number])
            rows.append(video.rows[crop.start : crop.stop])
            bounds.append(crop.bounds)
            labels.append(torch.from_numpy(video.steps)[crop.kept])
        features, there = (each.to(self.device) for each in gather(rows, self.config.max_length))
        steps = asked = None
        if self.config.candidates == "article":
            candidates = [torch.from_numpy(self.videos[number].candidates) for number in numbers.tolist()]
            steps = torch.unique(torch.cat(candidates))
            asked = torch.stack([torch.isin(steps, each) for each in candidates]).to(self.device)
            labels = [torch.searchsorted(steps, each) for each in labels]
            steps = steps.to(self.device)
        learned = targets(self.config, self.points, bounds, labels)
        return Batch(features, there, Targets(*(each.to(self.device) for each in learned)), steps, asked)

    def loss(self, model: ActionFormer, batch: Batch, normaliser: Tensor) -> Tensor:
        """Return the loss of a batch; see ``actionformer_loss.losses``."""
        said = model(batch.features, batch.there, self.texts, batch.steps)
        return losses(self.config, said, batch.learned, normaliser, batch.asked).total


class Crop(NamedTuple):
    """The rows [start, stop) of a video, the indices of the segments to train on, and their (n, 2) bounds in rows."""

    start: int
    stop: int
    kept: Tensor
    bounds: Tensor


def cropped(config: ActionFormerConfig, length: int, bounds: Tensor) -> Crop:
    """Draw a crop of a video with ``length`` rows and (n, 2) segments in rows, as in the release.

    A video longer than ``max_length`` is cropped to that length, a shorter one to a fraction of at least ``crop``. The
    result is the first of up to 200 draws that contains enough of a segment, or the last draw. Segments are trained on,
    clipped to the crop, if at least a fraction ``inside`` lies in the crop; its first and last second count in full.
    """
    size = config.max_length
    if length <= size:
        least = length if config.crop is None else max(round(config.crop * length), 1)
        size = int(torch.randint(least, length + 1, ()))
        if size == length:
            return Crop(0, length, torch.arange(len(bounds)), bounds)
    start = torch.randint(0, length - size + 1, (TRIES,))
    first = torch.maximum(bounds[:, 0], start[:, None] - CENTRE)
    last = torch.minimum(bounds[:, 1], start[:, None] + size + CENTRE)
    held = (last - first).clamp(min=0) / (bounds[:, 1] - bounds[:, 0]).abs() >= config.inside
    good = held.any(dim=1).nonzero()
    draw = int(good[0]) if len(good) else TRIES - 1
    kept = held[draw].nonzero()[:, 0]
    at = int(start[draw])
    return Crop(at, at + size, kept, torch.stack((first[draw], last[draw]), dim=1)[kept] - at)


def fit_actionformer(
    config: ActionFormerConfig,
    videos: Sequence[GroundedVideo],
    path: Path,
    *,
    texts: NDArray[np.floating[Any]] | None = None,
    epochs: int = 20,
    warmup_epochs: int = 5,
    batch_size: int = 16,
    learning_rate: float = 1e-4,
    weight_decay: float = 0.05,
    clip: float = 1.0,
    average: float = 0.999,
    seed: int = 0,
    device: str = "cpu",
    resume: str = "",
    begin: Path | None = None,
    what: str = "actionformer",
) -> None:
    """Train the network and write the average of its parameters to ``path``; defaults are HT-Step's and the release's.

    texts: (S, E), the vectors of all steps, for ActionFormer-T. epochs: in addition to the warm-up, which makes 25 by
    default, as in the released code. weight_decay: of AdamW, applied only to weights of convolutions and linear layers.
    clip: the maximum norm of the gradient. average: the decay of the parameter average; there is no validation. begin:
    a fit of the same network that provides the initial parameters.
    resume: see ``train``; it identifies the fit, including ``videos``, ``texts`` and ``begin``. A resumed fit keeps the
    normaliser of the losses, unlike the release, which restarts it at ``init_norm``.
    Raises the errors of ``Samples`` and ``loaded``, and ConfigError if no batch is full or a loss is not finite.
    """
    samples = Samples(config, videos, texts, device)
    updates = len(videos) // batch_size
    if not updates:
        raise ConfigError(
            f"{what}: batch_size {batch_size} is more than the {len(videos)} training videos; give a smaller one"
        )
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=device != "cpu")
    torch.manual_seed(seed)
    model = ActionFormer(config).to(device)
    if begin is not None:
        with loaded(begin) as tensors:
            restore(model, tensors, device)
    model.train()
    kept = copy.deepcopy(model)
    normaliser = torch.tensor(config.init_norm, dtype=torch.float64)
    fit = (resume, config, len(videos), epochs, warmup_epochs, batch_size, learning_rate, weight_decay, clip, average)
    try:
        train(
            kept.state_dict(),
            torch.optim.AdamW(decayed(model, weight_decay), lr=learning_rate, fused=True),
            lambda numbers: [samples.loss(model, samples.batch(numbers), normaliser)],
            shuffled(len(videos), batch_size, seed, full=True),
            path,
            epochs=warmup_epochs + epochs,
            updates=updates,
            rate=rates(learning_rate, warmup_epochs * updates, (warmup_epochs + epochs) * updates),
            every=updates,
            resume=resume and " ".join(map(str, (*fit, seed, device))),
            what=what,
            clip=clip,
            after=lambda _: blend(kept, model, average),
            also=model.state_dict() | {"normaliser": normaliser},
        )
    except FloatingPointError as error:
        raise ConfigError(f"learning_rate {learning_rate:g}: {error}; give a smaller one") from None


def decayed(model: ActionFormer, weight_decay: float) -> list[dict[str, Any]]:
    """Return AdamW's groups: weights of convolutions and linear layers with decay, all other parameters without."""
    parts: dict[bool, list[Tensor]] = {True: [], False: []}
    for name, parameter in model.named_parameters():
        parts[name.endswith("weight") and parameter.dim() > 1].append(parameter)
    return [{"params": parts[True], "weight_decay": weight_decay}, {"params": parts[False], "weight_decay": 0.0}]


def rates(learning_rate: float, rising: int, total: int) -> Callable[[int], float]:
    """Return the learning rate of each update: linear warm-up from 0 over ``rising`` updates, then half a cosine."""

    def rate(update: int) -> float:
        if update < rising:
            return learning_rate * update / max(rising - 1, 1)
        height = 0.5 * (1 + math.cos(math.pi * (update - rising) / (total - rising)))
        return LEAST_RATE + (learning_rate - LEAST_RATE) * height

    return rate

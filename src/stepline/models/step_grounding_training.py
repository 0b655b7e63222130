"""Training of MT+BCE on whole videos and their articles, with binary cross-entropy for each second and step."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stepline.errors import ConfigError
from stepline.models.grounding import GroundedVideo, Rows
from stepline.models.step_grounding import Sentences, StepGrounding
from stepline.models.step_grounding_config import StepGroundingConfig
from stepline.models.training import fit_head, loaded, restore, shuffled

AT_ONCE = 1 << 14
"""The maximum number of rows and sentences in memory at once, with padding, unless one video has more."""


def shown(video: GroundedVideo) -> NDArray[np.bool_]:
    """Return the (T, K) labels of seconds t that show steps of the article: floor(start) <= t < ceil(end).

    Raises ValueError if a segment has a step that is not in the article.
    """
    found = np.zeros((len(video.rows), len(video.candidates)), bool)
    place = {step: number for number, step in enumerate(video.candidates.tolist())}
    for (start_s, end_s), step in zip(video.segments_s.tolist(), video.steps.tolist(), strict=True):
        if step not in place:
            raise ValueError(f"step {step} of a segment is none of the article's {len(place)}")
        found[max(math.floor(start_s), 0) : max(math.ceil(end_s), 0), place[step]] = True
    return found


class Batches:
    """Videos with their articles, and batches of windows."""

    def __init__(self, videos: Sequence[GroundedVideo], sentences: Sentences, positions: int) -> None:
        """positions: the maximum length of a window in seconds. Raises ValueError as ``shown`` does."""
        self.videos, self.sentences, self.positions = videos, sentences, positions
        self.shown = [shown(each) for each in videos]
        self.lengths = torch.tensor([len(each.rows) for each in videos]).clamp(max=positions)
        self.steps = torch.tensor([len(each.candidates) for each in videos])
        self.texts = torch.tensor([int(sentences.counts[each.candidates].sum()) for each in videos])

    def drawn(self, batch_size: int, seed: int) -> Iterator[Tensor]:
        """Yield endless batches of permutations of the videos, (n, 3): index, first row, position of that row.

        A window has as many rows as there are positions, or all rows. The first row is random. As in TAN, its position
        is random below half the number of rows, if the table has positions for the other rows.
        """
        generator = torch.Generator().manual_seed(seed)
        whole = torch.tensor([len(each.rows) for each in self.videos])
        for batch in shuffled(len(self.videos), batch_size, seed):
            n = self.lengths[batch]
            choices = torch.stack((whole[batch] - n + 1, torch.minimum(n // 2, self.positions - n + 1).clamp(min=1)))
            first, start = (torch.rand(choices.shape, generator=generator, dtype=torch.float64) * choices).long()
            yield torch.stack((batch, first, start), dim=1)

    def parts(self, batch: Tensor) -> list[Tensor]:
        """Return a batch in parts with videos of similar length, to limit padding and to fit ``AT_ONCE``."""
        sizes = torch.stack((self.lengths[batch[:, 0]], self.texts[batch[:, 0]]), dim=1)
        order = sizes.sum(dim=1).argsort(stable=True)
        parts, part, most = [], list[int](), torch.zeros(2, dtype=torch.int64)
        for number in order.tolist():
            most = torch.maximum(most, sizes[number])
            if part and (len(part) + 1) * int(most.sum()) > AT_ONCE:
                parts.append(batch[part])
                part, most = [], sizes[number]
            part.append(number)
        return [*parts, batch[part]]

    def losses(self, model: StepGrounding, batch: Tensor) -> Iterator[Tensor]:
        """Yield the losses of the parts of a batch; their sum is the mean over all seconds and steps of the batch."""
        cells = (self.lengths * self.steps)[batch[:, 0]].sum()
        for part in self.parts(batch):
            share = (self.lengths * self.steps)[part[:, 0]].sum() / cells
            yield model.loss(*self.given(part)) * float(share)

    def given(self, part: Tensor) -> tuple[Any, ...]:
        """Return the arguments of the loss for a part."""
        device = self.sentences.table.device
        number, first, start = part.unbind(1)
        chosen = [self.videos[each] for each in number.tolist()]
        windows = [slice(of, of + self.positions) for of in first.tolist()]
        rows = [video.rows[window] for video, window in zip(chosen, windows, strict=True)]
        learned = torch.zeros(len(part), max(map(len, rows)), int(self.steps[number].max()), dtype=torch.bool)
        for place, (of, window) in enumerate(zip(number.tolist(), windows, strict=True)):
            truth = torch.from_numpy(self.shown[of][window])
            learned[place, : truth.shape[0], : truth.shape[1]] = truth
        return self.sentences.beside(rows, [each.candidates for each in chosen], start), learned.to(device)


def fit_step_grounding(
    config: StepGroundingConfig,
    videos: Sequence[GroundedVideo],
    path: Path,
    *,
    sentences: Sequence[Rows],
    batch_size: int,
    epochs: int = 9,
    learning_rate: float = 1e-4,
    weight_decay: float = 1e-5,
    warm_up: int = 1000,
    seed: int = 0,
    device: str = "cpu",
    resume: str = "",
    begin: Path | None = None,
    what: str = "step grounding",
) -> None:
    """Train the network and write the last epoch to ``path``; except for epochs, defaults are those of TAN.

    videos: each is seen through a random window with as many rows as there are positions, or whole. sentences: the (n,
    E) vectors of each step's sentences, by step index; one vector is the headline alone. batch_size: 128 for TAN,
    unknown for VINA. weight_decay: of AdamW, applied to weights and positional tables, not to biases and norms.
    warm_up: the number of updates in which the learning rate rises from 0, at most half of all, before it falls to 0 by
    a cosine. begin: an initial checkpoint of the same network, such as one trained on ``narrated_video``s.
    resume: see ``fit_head``. Raises the errors of ``fit_head``, StoreError if ``begin`` is absent or damaged,
    ConfigError if it belongs to another network, and ValueError if a step has no sentence or a segment has a step that
    is not in its article.
    """
    batches = Batches(videos, Sentences(sentences, device), config.positions)
    updates = math.ceil(len(videos) / batch_size)
    rising = min(warm_up, epochs * updates // 2)

    def make() -> StepGrounding:
        model = StepGrounding(config)
        if begin is not None:
            with loaded(begin) as tensors:
                state = tensors
            try:
                restore(model, state, "cpu")
            except (KeyError, ValueError) as error:
                raise ConfigError(f"{begin} is for another network: train it with these sizes ({error})") from None
        return model

    def factor(passed: float) -> float:
        update = round(passed * updates)
        if update < rising:
            return update / rising
        return 0.5 * (1 + math.cos(math.pi * (update - rising) / (epochs * updates - rising)))

    def groups(model: StepGrounding) -> list[dict[str, Any]]:
        decayed = [each for each in model.parameters() if each.dim() > 1]
        return [
            {"params": decayed},
            {"params": [each for each in model.parameters() if each.dim() == 1], "weight_decay": 0.0},
        ]

    fit_head(
        make,
        batches.losses,
        None,
        len(videos),
        path,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        seed=seed,
        device=device,
        resume=resume and f"{resume} {config} {weight_decay} {warm_up} {begin}",
        weight_decay=weight_decay,
        decoupled=True,
        factor=factor,
        batches=batches.drawn(batch_size, seed),
        groups=groups,
        fused=True,
        what=what,
    )

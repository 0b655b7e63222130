"""All-layer fine-tuning: AdamW with warm-up and half a cosine (Spacewalk-18, Sec. 5.1, Appendix E.2)."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.errors import ConfigError
from stepline.models import training
from stepline.spec import digest

if TYPE_CHECKING:
    import torch

EVERY = 100
"""Steps after which the state is kept."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How is trained.

    learning_rate: the highest. weight_decay: decoupled from the gradient (AdamW), of parameters with two or more
    dimensions. warm_up: the part of all steps in which the rate rises. batch_size: samples of one step.
    """

    learning_rate: float
    weight_decay: float
    warm_up: float
    epochs: int
    batch_size: int
    seed: int

    def rate(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, 0 <= step < steps: linear up to the highest, then half a cosine to 0."""
        rising = math.ceil(self.warm_up * steps)
        if step < rising:
            return self.learning_rate * (step + 1) / rising
        return self.learning_rate * (1 + math.cos(math.pi * (step - rising) / (steps - rising))) / 2


def train(
    parameters: "Mapping[str, torch.nn.Parameter]",
    losses: "Callable[[list[int]], torch.Tensor]",
    samples: int,
    path: Path,
    recipe: Recipe,
    *,
    at_once: int,
    made_from: object,
) -> None:
    """Train the parameters and write them by name, float32, and ``loss`` (steps,) to the safetensors file ``path``.

    losses: numbers of some of the samples -> their (n,) losses, whose mean over a batch is brought down. at_once:
    samples that it is given together; gradients of a batch add up, so that only rounding depends on it. Samples are
    shuffled anew in each epoch; an epoch's last batch may be smaller. All parameters must have a part in the losses.
    The state is kept after each 100 steps, as in ``training.train``; a later call with the same recipe, samples and
    ``made_from``, plain values that say what they are made from, goes on from it.
    Raises ConfigError where a loss is not finite, StoreError where the state is damaged.
    """
    import torch

    updates = max(1, math.ceil(samples / recipe.batch_size))
    matrices = [parameter for parameter in parameters.values() if parameter.ndim > 1]
    others = [parameter for parameter in parameters.values() if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]

    def parts(batch: torch.Tensor) -> Iterator[torch.Tensor]:
        for some in torch.split(batch, at_once):
            yield losses(some.tolist()).sum() / len(batch)

    try:
        training.train(
            parameters,
            torch.optim.AdamW(groups),
            parts,
            training.shuffled(samples, recipe.batch_size, recipe.seed),
            path,
            epochs=recipe.epochs,
            updates=updates,
            rate=lambda step: recipe.rate(step, recipe.epochs * updates),
            every=EVERY,
            resume=digest([asdict(recipe), samples, made_from]),
            what="all-layer",
        )
    except FloatingPointError as error:
        raise ConfigError(f"all_layer.learning_rate: {error}; give a smaller one") from None

"""All-layer fine-tuning as in InternVideo's code, or with AdamW (Spacewalk-18, Sec. 5.1, Appendix E.2)."""

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
"""The number of steps between saved states."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The training recipe.

    optimiser: ``bert_adam`` as in InternVideo's code: ``BertAdam``, the norm of all gradients also clipped to 1, weight
    decay on all parameters except biases; or ``adamw``: torch's, without clipping, weight decay on parameters with two
    or more dimensions. learning_rate: the maximum. weight_decay: decoupled from the gradient. warm_up: the fraction of
    all steps in which the rate rises. batch_size: samples per step.
    """

    optimiser: str
    learning_rate: float
    weight_decay: float
    warm_up: float
    epochs: int
    batch_size: int
    seed: int

    def rate(self, step: int, steps: int) -> float:
        """Return the learning rate of a step, 0 <= step < steps: linear warm-up, then half a cosine down to 0.

        With ``bert_adam`` the rate starts at 0 and the cosine spans all steps, so after warm-up it starts below the
        maximum. With ``adamw`` the first step has a positive rate, and the cosine starts after warm-up at the maximum.
        """
        if self.optimiser == "bert_adam":
            done = step / steps
            return self.learning_rate * (
                done / self.warm_up if done < self.warm_up else (1 + math.cos(math.pi * done)) / 2
            )
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
    after: Callable[[], None] = lambda: None,
) -> None:
    """Train the parameters and write them by name, float32, and ``loss`` (steps,) to the safetensors file ``path``.

    losses: indices of samples -> their (n,) losses; the mean over a batch is minimised. at_once: the number of samples
    per call; gradients are accumulated over a batch, so it affects only rounding. Samples are reshuffled in each epoch,
    and the last batch of an epoch may be smaller. Every parameter must contribute to the losses. after: called after
    each step.
    The state is saved every 100 steps, as in ``training.train``. A later call with the same recipe, samples and
    ``made_from``, plain values that identify the inputs, resumes from it.
    Raises ConfigError if a loss is not finite, StoreError if the state is damaged.
    """
    import torch

    from stepline.models.bert_adam import MAX_NORM, BertAdam

    updates = max(1, math.ceil(samples / recipe.batch_size))
    released = recipe.optimiser == "bert_adam"
    decayed, others = list[torch.nn.Parameter](), list[torch.nn.Parameter]()
    for name, parameter in parameters.items():
        decays = "bias" not in name if released else parameter.ndim > 1
        (decayed if decays else others).append(parameter)
    groups = [{"params": decayed, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]

    def parts(batch: torch.Tensor) -> Iterator[torch.Tensor]:
        for some in torch.split(batch, at_once):
            yield losses(some.tolist()).sum() / len(batch)

    try:
        training.train(
            parameters,
            BertAdam(groups) if released else torch.optim.AdamW(groups),
            parts,
            training.shuffled(samples, recipe.batch_size, recipe.seed),
            path,
            epochs=recipe.epochs,
            updates=updates,
            rate=lambda step: recipe.rate(step, recipe.epochs * updates),
            every=EVERY,
            resume=digest([asdict(recipe), samples, made_from]),
            what="all-layer",
            clip=MAX_NORM if released else math.inf,
            after=lambda _: after(),
        )
    except FloatingPointError as error:
        raise ConfigError(f"all_layer.learning_rate: {error}; give a smaller one") from None

"""All-layer fine-tuning: a training loop that goes on after a kill (Spacewalk-18, Sec. 5.1, Appendix E.2)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.errors import ConfigError, StoreError
from stepline.io import atomic_path
from stepline.progress import progress
from stepline.spec import digest

if TYPE_CHECKING:
    import torch

EVERY = 100
"""Steps after which the state is written: what a kill can lose."""


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
    A state beside ``path`` is written every 100 steps; a later call with the same recipe, samples and ``made_from``,
    plain values that say what they are made from, goes on from it, to the same bytes on a CPU.
    Raises ConfigError where a loss is not finite, StoreError where the state is damaged.
    """
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(recipe.seed)
    orders = [torch.randperm(samples, generator=generator) for _ in range(recipe.epochs)]
    batches = [batch.tolist() for order in orders for batch in torch.split(order, recipe.batch_size)]
    matrices = [parameter for parameter in parameters.values() if parameter.ndim > 1]
    others = [parameter for parameter in parameters.values() if parameter.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": recipe.weight_decay}, {"params": others, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups)
    state = _State(path, parameters, optimiser, digest([asdict(recipe), samples, made_from]))
    history = state.read()
    for step in progress(range(len(history), len(batches)), what="all-layer", unit="steps"):
        for group in optimiser.param_groups:
            group["lr"] = recipe.rate(step, len(batches))
        optimiser.zero_grad()
        total = 0.0
        for first in range(0, len(batches[step]), at_once):
            loss = losses(batches[step][first : first + at_once]).sum() / len(batches[step])
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        if not math.isfinite(total):
            raise ConfigError(f"all_layer.learning_rate: the loss of step {step} is not finite; give a smaller one")
        optimiser.step()
        history.append(total)
        if len(history) % EVERY == 0 and len(history) < len(batches):
            state.write(history)
    with atomic_path(path) as part:
        save_file({**_plain(parameters), "loss": torch.tensor(history, dtype=torch.float64)}, part)
    state.path.unlink(missing_ok=True)


class _State:
    """Parameters, Adam's moments and the losses so far, in a file beside the result."""

    def __init__(
        self,
        result: Path,
        parameters: "Mapping[str, torch.nn.Parameter]",
        optimiser: "torch.optim.Optimizer",
        identity: str,
    ) -> None:
        self.path = result.with_name(f"{result.stem}.state.safetensors")
        self.parameters, self.optimiser, self.identity = parameters, optimiser, identity

    def write(self, history: list[float]) -> None:
        """Write all that the next step depends on."""
        import torch
        from safetensors.torch import save_file

        tensors = {f"parameter.{name}": value for name, value in _plain(self.parameters).items()}
        for name, parameter in self.parameters.items():
            for moment in ("exp_avg", "exp_avg_sq"):
                tensors[f"{moment}.{name}"] = self.optimiser.state[parameter][moment].contiguous()
        tensors["loss"] = torch.tensor(history, dtype=torch.float64)
        with atomic_path(self.path) as part:
            save_file(tensors, part, metadata={"made_from": self.identity})

    def read(self) -> list[float]:
        """Set parameters and moments to those of the state, and return the losses until then, none without a state."""
        import torch
        from safetensors import SafetensorError, safe_open

        if not self.path.exists():
            return []
        try:
            with safe_open(self.path, framework="pt") as file:
                if file.metadata()["made_from"] != self.identity:
                    return []
                history: list[float] = file.get_tensor("loss").tolist()
                for name, parameter in self.parameters.items():
                    with torch.no_grad():
                        parameter.copy_(file.get_tensor(f"parameter.{name}"))
                    moments = {
                        moment: file.get_tensor(f"{moment}.{name}").to(parameter.device)
                        for moment in ("exp_avg", "exp_avg_sq")
                    }
                    self.optimiser.state[parameter] = {"step": torch.tensor(float(len(history))), **moments}
        except SafetensorError as error:
            raise StoreError(f"{self.path} is damaged ({error}): remove it and run `stepline fit` again") from None
        return history


def _plain(parameters: "Mapping[str, torch.nn.Parameter]") -> "dict[str, torch.Tensor]":
    return {name: parameter.detach().cpu().contiguous() for name, parameter in parameters.items()}

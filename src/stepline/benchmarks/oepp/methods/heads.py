"""The MLP and the Transformer (Sec. 5.2): from both observations to T vectors, each read as the nearest action."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.benchmarks.oepp.material import Material
from stepline.benchmarks.oepp.methods import Method
from stepline.benchmarks.oepp.methods.trained import Samples, fit_planner, fitted

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


def fit(material: Material, seed: int, path: Path) -> None:
    """Fit on train; keep the epoch of the best success rate on val."""
    from stepline.models.plan_loss import plan_loss

    def loss(model: "Module", train: Samples, batch: "Tensor") -> "Tensor":
        x, which = model(train.observations(batch)), material.entry.settings["loss"]
        return plan_loss(x, train.text, train.labels[batch], loss=which, **material.options["loss"])

    decay = material.options["heads"]["weight_decay"]
    fit_planner(material, seed, path, lambda train: _build(material, train), loss, _vectors, weight_decay=decay)


def make(material: Material, fits: list[Path]) -> Iterator[tuple[int, Method]]:
    """Yield the fitted model of each seed."""
    return fitted(material, fits, lambda samples: _build(material, samples), _vectors)


def _build(material: Material, samples: Samples) -> "Module":
    from stepline.models.planners import MlpPlanner, TransformerPlanner

    made: type[Module] = {"mlp": MlpPlanner, "transformer": TransformerPlanner}[material.entry.kind]
    return made(samples.rows.shape[1], samples.text.shape[1], samples.labels.shape[1])


def _vectors(model: "Module", samples: Samples) -> "Tensor":
    found: Tensor = model(samples.observations())
    return found

"""PDPP* (Sec. 5.2, Eq. 7): a plan's vectors made from noise, each read as the nearest action."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.benchmarks.oepp.material import Material
from stepline.benchmarks.oepp.methods import Method
from stepline.benchmarks.oepp.methods.trained import Samples, fit_planner, fitted

if TYPE_CHECKING:
    from torch import Tensor

    from stepline.models.diffusion import PlanDiffusion


def fit(material: Material, seed: int, path: Path) -> None:
    """Fit on train; keep the epoch of the best success rate on val, of the averaged parameters."""
    from stepline.models.diffusion import averaging, schedule
    from stepline.models.plan_loss import balanced_loss

    options = material.options["pdpp"]

    def loss(model: "PlanDiffusion", train: Samples, batch: "Tensor") -> "Tensor":
        labels = train.labels[batch]
        x = model(train.observations(batch), train.text[labels] if options["actions"] == "text" else None)
        return balanced_loss(x, train.text, labels, **material.options["loss"])

    fit_planner(
        material,
        seed,
        path,
        lambda train: _build(material, train),
        loss,
        lambda model, samples: _vectors(material, model, samples),
        steps=options["steps"],
        factor=schedule(options["epochs"]),
        average=averaging(options["ema_decay"], options["ema_start"], options["ema_every"]),
    )


def make(material: Material, fits: list[Path]) -> Iterator[tuple[int, Method]]:
    """Yield the fitted model of each seed."""
    return fitted(
        material,
        fits,
        lambda samples: _build(material, samples),
        lambda model, samples: _vectors(material, model, samples),
    )


def _build(material: Material, samples: Samples) -> "PlanDiffusion":
    from stepline.models.diffusion import PlanDiffusion

    options = material.options["pdpp"]
    sizes = samples.text.shape[1], samples.rows.shape[1], samples.labels.shape[1]
    return PlanDiffusion(*sizes, width=options["width"], steps=options["diffusion_steps"])


def _vectors(material: Material, model: "PlanDiffusion", samples: Samples) -> "Tensor":
    """Return the plans of all windows; their noise is drawn in their order on the CPU, so it is the same anywhere."""
    import torch

    options, size = material.options["pdpp"], (len(samples.index), model.horizon, model.text)
    noise = torch.randn(size, generator=torch.Generator().manual_seed(options["sampling_seed"]))
    return model.sample(samples.observations(), noise.to(samples.rows.device), n_steps=options["sampling_steps"])

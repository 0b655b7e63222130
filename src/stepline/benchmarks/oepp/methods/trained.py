"""What trained planners share: all observations in one array, the epoch of the best validation success rate."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from stepline.benchmarks.oepp.material import Material
from stepline.benchmarks.oepp.methods import Method
from stepline.benchmarks.oepp.windows import Window
from stepline.datasets.oepp import Part
from stepline.features.network import device_of
from stepline.models.training import fit_head, loaded, restore
from stepline.spec import digest

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Model = TypeVar("Model", bound="torch.nn.Module")


@dataclass(frozen=True)
class Samples:
    """Windows on the device. rows: (R, D); index: (N, 6) rows of each window; text: (classes, D); labels: (N, T)."""

    rows: "Tensor"
    index: "Tensor"
    text: "Tensor"
    labels: "Tensor"

    @classmethod
    def of(cls, material: Material, part: Part, windows: Sequence[Window]) -> "Samples":
        """Return windows of a part that are ``used``."""
        import torch

        observed, device = material.observations(windows), device_of(material.plan.config["features"]["device"])
        labels = torch.tensor(material.labels(part, windows), device=device)
        rows, index = (torch.from_numpy(each).to(device) for each in (observed.rows, observed.index))
        return cls(rows, index, torch.from_numpy(material.text(part)).to(device), labels)

    def observations(self, batch: "Tensor | slice" = slice(None)) -> "Tensor":
        """Return the (B, 6 D) start and end observations of some windows."""
        return self.rows[self.index[batch]].flatten(1)


def fit_planner(
    material: Material,
    seed: int,
    path: Path,
    build: "Callable[[Samples], Model]",
    loss: "Callable[[Model, Samples, Tensor], Tensor]",
    vectors: "Callable[[Model, Samples], Tensor]",
    **options: Any,
) -> None:
    """Fit on the training windows; keep the first epoch with the best success rate on validation.

    build: from the training windows. loss: of the windows at some places. vectors: the (N, T, D) that are read as
    actions; an epoch in which one is not finite is never kept. options: of `stepline.models.training.fit_head`.
    """
    from stepline.models.plan_loss import read_out

    train, val = (Samples.of(material, part, material.used(part)) for part in ("train", "val"))
    block = material.options[material.entry.made.options]

    def failures(model: Model) -> float:
        x = vectors(model, val)
        found = (read_out(x, val.text) == val.labels).all(dim=1).double().mean()
        return 1 - float(found) if x.isfinite().all() else nan

    fit_head(
        lambda: build(train),
        lambda model, batch: [loss(model, train, batch.to(train.index.device))],
        failures,
        len(train.index),
        path,
        epochs=block["epochs"],
        batch_size=block["batch_size"],
        learning_rate=block["learning_rate"],
        seed=seed,
        device=train.rows.device.type,
        fused=True,
        resume=digest([material.spec, [[each.video, each.index] for each in material.used("train")]]),
        what=f"{material.entry.id}, seed {seed}",
        **options,
    )


def fitted(
    material: Material,
    fits: Sequence[Path],
    build: "Callable[[Samples], Model]",
    vectors: "Callable[[Model, Samples], Tensor]",
) -> Iterator[tuple[int, Method]]:
    """Yield each seed with its fitted model's method; raise StoreError where a checkpoint is absent or damaged."""
    import torch

    from stepline.models.plan_loss import read_out

    for seed, path in zip(material.entry.seeds, fits, strict=True):

        def predict(part: Part, windows: Sequence[Window], path: Path = path) -> list[tuple[int, ...]]:
            samples = Samples.of(material, part, windows)
            with loaded(path) as parameters:
                model = restore(build(samples), parameters, samples.rows.device.type)
            with torch.inference_mode():
                return [tuple(plan) for plan in read_out(vectors(model, samples), samples.text).tolist()]

        yield seed, predict

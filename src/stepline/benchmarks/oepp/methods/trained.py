"""The base of trained planners: all observations are one array, and the epoch with the best success rate is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from stepline.benchmarks.oepp.features import vectors
from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.methods.observations import Observations
from stepline.benchmarks.oepp.methods.planner import Planner
from stepline.benchmarks.oepp.windows import Window
from stepline.models.training import fit_head, loaded, restore
from stepline.spec import digest

if TYPE_CHECKING:
    import torch
    from torch import Tensor

Model = TypeVar("Model", bound="torch.nn.Module")


@dataclass(frozen=True)
class Samples:
    """Windows on the device. rows: (R, D); index: (N, 6), rows by window; text: (classes, D); labels: (N, T)."""

    rows: "Tensor"
    index: "Tensor"
    text: "Tensor"
    labels: "Tensor"

    @classmethod
    def of(cls, inputs: OeppInputs, split: str, windows: Sequence[Window]) -> "Samples":
        """Return the samples of ``used`` windows of a split."""
        import torch

        observed, device = Observations.of(inputs, windows), inputs.device
        labels = torch.tensor(inputs.labels(split, windows), device=device)
        rows, index = (torch.from_numpy(each).to(device) for each in (observed.rows, observed.index))
        return cls(rows, index, torch.from_numpy(vectors(inputs, split)).to(device), labels)

    def observations(self, batch: "Tensor | slice" = slice(None)) -> "Tensor":
        """Return the (B, 6 D) start and end observations of some windows."""
        return self.rows[self.index[batch]].flatten(1)


class Trained(Planner, Generic[Model]):
    """A planner that is fitted. Its model predicts vectors, and each vector yields the nearest action."""

    def build(self, inputs: OeppInputs, samples: Samples) -> Model:
        """Return an untrained model."""
        raise NotImplementedError

    def loss(self, inputs: OeppInputs, model: Model, train: Samples, batch: "Tensor") -> "Tensor":
        """Return the loss of a batch of training windows, given by their indices."""
        raise NotImplementedError

    def vectors(self, inputs: OeppInputs, model: Model, samples: Samples) -> "Tensor":
        """Return the (N, T, D) vectors of all windows. An epoch with vectors that are not finite is never kept."""
        raise NotImplementedError

    def training(self, inputs: OeppInputs) -> dict[str, Any]:
        """Return further arguments of `stepline.models.training.fit_head`."""
        raise NotImplementedError

    def fit(self, inputs: OeppInputs, seed: int, path: Path) -> None:
        """Fit on the training windows; keep the first epoch with the best success rate on validation."""
        from stepline.models.plan_loss import read_out

        used = {split: inputs.used(split) for split in ("train", "val")}
        train, val = (Samples.of(inputs, split, windows) for split, windows in used.items())
        block = inputs.options[inputs.entry.kind.options]

        def failures(model: Model) -> float:
            x = self.vectors(inputs, model, val)
            found = (read_out(x, val.text) == val.labels).all(dim=1).double().mean()
            return 1 - float(found) if x.isfinite().all() else nan

        fit_head(
            lambda: self.build(inputs, train),
            lambda model, batch: [self.loss(inputs, model, train, batch.to(train.index.device))],
            failures,
            len(train.index),
            path,
            epochs=block["epochs"],
            batch_size=block["batch_size"],
            learning_rate=block["learning_rate"],
            seed=seed,
            device=inputs.device,
            fused=True,
            resume=digest([inputs.spec, [[each.video, each.index] for windows in used.values() for each in windows]]),
            what=f"{inputs.entry.id}, seed {seed}",
            **self.training(inputs),
        )

    def plans(
        self, inputs: OeppInputs, split: str, windows: Sequence[Window], fit: Path | None
    ) -> list[tuple[int, ...]]:
        """Return the plans of a checkpoint; raise StoreError if it is absent or damaged."""
        import torch

        from stepline.models.plan_loss import read_out

        assert fit is not None
        samples = Samples.of(inputs, split, windows)
        with loaded(fit) as parameters:
            model = restore(self.build(inputs, samples), parameters, inputs.device)
        with torch.inference_mode():
            return [tuple(plan) for plan in read_out(self.vectors(inputs, model, samples), samples.text).tolist()]

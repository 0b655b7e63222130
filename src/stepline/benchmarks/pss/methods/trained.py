"""What all trained methods share: one video at a time, an epoch chosen on validation, a model of each seed."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from stepline.benchmark import Method
from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.kinds import Segmentation
from stepline.datasets.pss import Procedure
from stepline.metrics.soda import soda_d
from stepline.models.training import fit_head, loaded, restore
from stepline.progress import progress
from stepline.spec import digest

if TYPE_CHECKING:
    import torch

Model = TypeVar("Model", bound="torch.nn.Module")


class Trained(Method[PssInputs, Segmentation], Generic[Model]):
    """A method that is fitted; subclasses build a model, and say its loss and what it predicts."""

    def build(self, inputs: PssInputs) -> Model:
        """Return a model with parameters that are to be trained."""
        raise NotImplementedError

    def loss(self, model: Model, inputs: PssInputs, procedure: Procedure) -> "torch.Tensor":
        """Return the loss of a training video."""
        raise NotImplementedError

    def decode(self, model: Model, inputs: PssInputs, procedure: Procedure) -> dict[str, Any]:
        """Return the segments of a video, and what else a `Segmentation` holds of it."""
        raise NotImplementedError

    def val_loss(self, model: Model, inputs: PssInputs, videos: Sequence[Procedure]) -> float:
        """Return 1 less the mean SODA-D F1 of what is predicted for the validation videos."""
        found = [(each.segments, self.decode(model, inputs, each)["segments"]) for each in videos]
        return 1 - float(np.mean([soda_d(true, segments).f1 for true, segments in found]))

    def training(self, inputs: PssInputs) -> dict[str, Any]:
        """Return more options of `stepline.models.training.fit_head`."""
        raise NotImplementedError

    def fit(self, inputs: PssInputs, seed: int, path: Path) -> None:
        """Fit on the training videos, one at a time; keep the epoch of the least ``val_loss``."""
        train, val = inputs.used("train"), inputs.used("val")
        block = inputs.options[inputs.entry.kind.options]
        fit_head(
            lambda: self.build(inputs),
            lambda model, batch: (self.loss(model, inputs, train[index]) for index in batch.tolist()),
            lambda model: self.val_loss(model, inputs, val),
            len(train),
            path,
            epochs=block["epochs"],
            batch_size=1,
            learning_rate=block["learning_rate"],
            weight_decay=block["weight_decay"],
            seed=seed,
            device=inputs.device,
            resume=digest([inputs.spec, [each.video for each in [*train, *val]]]),
            what=f"{inputs.entry.id} on {inputs.release}, seed {seed}",
            **self.training(inputs),
        )

    def predict(self, inputs: PssInputs, fits: Sequence[Path]) -> Iterator[Segmentation]:
        """Yield what each seed's model says; raise StoreError where a checkpoint is absent or damaged."""
        used, listed = len(inputs.used("train")), len(inputs.truth("train"))
        self.selection = f"fitted on {used} of {listed} training videos; epoch of the best validation score"
        videos = [(split, each) for split in inputs.entry.splits for each in inputs.used(split)]
        for seed, path in zip(inputs.entry.seeds, fits, strict=True):
            with loaded(path) as parameters:
                model = restore(self.build(inputs), parameters, inputs.device)
            for split, procedure in progress(videos, what=f"{inputs.entry.id}, seed {seed}", unit="videos"):
                said = self.decode(model, inputs, procedure)
                yield Segmentation(seed=seed, split=split, video=procedure.video, **said)


def features(inputs: PssInputs, procedure: Procedure, length: int) -> "torch.Tensor":
    """Return the (length, D) features of a video on the device."""
    import torch

    return torch.from_numpy(inputs.resized(procedure.video, length)).to(inputs.device)


def fractions(inputs: PssInputs, procedure: Procedure) -> "torch.Tensor":
    """Return the (n, 2) segments of a video on the device, from 0 to 1 of its duration."""
    import torch

    return (torch.tensor(procedure.segments) / procedure.duration_s).clamp(0, 1).to(inputs.device)

"""The base of trained methods: one model per seed, with the epoch chosen on val."""

from collections.abc import Iterable, Iterator, Sequence
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
    """A trained method; subclasses build its model, compute its losses and decode its predictions."""

    def build(self, inputs: PssInputs) -> Model:
        """Return an untrained model."""
        raise NotImplementedError

    def losses(self, model: Model, inputs: PssInputs, videos: Sequence[Procedure]) -> "Iterable[torch.Tensor]":
        """Return the losses of a batch of training videos; their sum is minimised."""
        raise NotImplementedError

    def decode(self, model: Model, inputs: PssInputs, videos: Sequence[Procedure]) -> Iterator[dict[str, Any]]:
        """Yield the segments and the other fields of each video's `Segmentation`."""
        raise NotImplementedError

    def val_loss(self, model: Model, inputs: PssInputs, videos: Sequence[Procedure]) -> float:
        """Return 1 minus the mean SODA-D F1 of predictions for the validation videos."""
        decoded = self.decode(model, inputs, videos)
        found = [soda_d(true.segments, said["segments"]).f1 for true, said in zip(videos, decoded, strict=True)]
        return 1 - float(np.mean(found))

    def training(self, inputs: PssInputs) -> dict[str, Any]:
        """Return further options of `stepline.models.training.fit_head`, including ``batch_size``."""
        raise NotImplementedError

    def fit(self, inputs: PssInputs, seed: int, path: Path) -> None:
        """Fit on the training videos; keep the epoch of the lowest ``val_loss``."""
        train, val = inputs.used("train"), inputs.used("val")
        block = inputs.options[inputs.entry.kind.options]
        fit_head(
            lambda: self.build(inputs),
            lambda model, batch: self.losses(model, inputs, [train[index] for index in batch.tolist()]),
            lambda model: self.val_loss(model, inputs, val),
            len(train),
            path,
            epochs=block["epochs"],
            learning_rate=block["learning_rate"],
            weight_decay=block["weight_decay"],
            seed=seed,
            device=inputs.device,
            resume=digest([inputs.spec, [each.video for each in [*train, *val]]]),
            what=f"{inputs.entry.id} on {inputs.release}, seed {seed}",
            **self.training(inputs),
        )

    def predict(self, inputs: PssInputs, fits: Sequence[Path]) -> Iterator[Segmentation]:
        """Yield the predictions of each seed's model; raise StoreError if a checkpoint is absent or damaged."""
        used, listed = len(inputs.used("train")), len(inputs.truth("train"))
        self.selection = f"fitted on {used} of {listed} training videos; epoch of the best validation score"
        videos = [(split, each) for split in inputs.entry.splits for each in inputs.used(split)]
        for seed, path in zip(inputs.entry.seeds, fits, strict=True):
            with loaded(path) as parameters:
                model = restore(self.build(inputs), parameters, inputs.device)
            decoded = self.decode(model, inputs, [procedure for _, procedure in videos])
            shown = progress(decoded, what=f"{inputs.entry.id}, seed {seed}", unit="videos", total=len(videos))
            for (split, procedure), said in zip(videos, shown, strict=True):
                yield Segmentation(seed=seed, split=split, video=procedure.video, **said)


def features(inputs: PssInputs, procedure: Procedure, length: int) -> "torch.Tensor":
    """Return the (length, D) features of a video on the device."""
    import torch

    return torch.from_numpy(inputs.resized(procedure.video, length)).to(inputs.device)


def fractions(inputs: PssInputs, procedure: Procedure) -> "torch.Tensor":
    """Return the (n, 2) segments of a video on the device, as fractions of its duration."""
    import torch

    return (torch.tensor(procedure.segments) / procedure.duration_s).clamp(0, 1).to(inputs.device)

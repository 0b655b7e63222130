"""What all trained methods share: one video at a time, an epoch chosen on validation, a model of each seed."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from stepline.benchmark import Method
from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.kinds import Segmentation
from stepline.datasets.pss import Procedure
from stepline.features.network import device_of
from stepline.metrics.soda import soda_d
from stepline.models.training import fit_head, loaded, restore
from stepline.progress import progress
from stepline.spec import digest

if TYPE_CHECKING:
    import torch

Model = TypeVar("Model", bound="torch.nn.Module")


class Trained(Method[PssInputs, Segmentation], Generic[Model]):
    """A method that is fitted; subclasses build a model and say what it predicts."""

    def build(self, inputs: PssInputs) -> Model:
        """Return a model with parameters that are to be trained."""
        raise NotImplementedError

    def decode(self, model: Model, inputs: PssInputs, procedure: Procedure) -> dict[str, Any]:
        """Return the segments of a video, and what else a `Segmentation` holds of it."""
        raise NotImplementedError

    def predict(self, inputs: PssInputs, fits: Sequence[Path]) -> Iterator[Segmentation]:
        """Yield what each seed's model says; raise StoreError where a checkpoint is absent or damaged."""
        used, listed = len(inputs.used("train")), len(inputs.truth("train"))
        self.selection = f"fitted on {used} of {listed} training videos; epoch of the best validation score"
        videos = [(split, each) for split in inputs.entry.splits for each in inputs.used(split)]
        for seed, path in zip(inputs.entry.seeds, fits, strict=True):
            with loaded(path) as parameters:
                model = restore(self.build(inputs), parameters, device(inputs))
            for split, procedure in progress(videos, what=f"{inputs.entry.id}, seed {seed}", unit="videos"):
                said = self.decode(model, inputs, procedure)
                yield Segmentation(seed=seed, split=split, video=procedure.video, **said)


def device(inputs: PssInputs) -> str:
    """Return where models run."""
    return device_of(inputs.benchmark.config["features"]["device"]).type


def fit_videos(
    inputs: PssInputs,
    seed: int,
    path: Path,
    build: Callable[[], Model],
    loss: "Callable[[Model, Procedure], torch.Tensor]",
    val_loss: "Callable[[Model, Sequence[Procedure]], float]",
    **options: Any,
) -> None:
    """Fit on the training videos, one at a time; keep the epoch of the least ``val_loss`` on the validation videos.

    options: of `stepline.models.training.fit_head`.
    """
    train, val = inputs.used("train"), inputs.used("val")
    block = inputs.options[inputs.entry.kind.options]
    fit_head(
        build,
        lambda model, batch: (loss(model, train[index]) for index in batch.tolist()),
        lambda model: val_loss(model, val),
        len(train),
        path,
        epochs=block["epochs"],
        batch_size=1,
        learning_rate=block["learning_rate"],
        weight_decay=block["weight_decay"],
        seed=seed,
        device=device(inputs),
        resume=digest([inputs.spec, [each.video for each in [*train, *val]]]),
        what=f"{inputs.entry.id} on {inputs.release}, seed {seed}",
        **options,
    )


def missed(videos: Sequence[Procedure], segments: Callable[[Procedure], Sequence[tuple[float, float]]]) -> float:
    """Return 1 less the mean SODA-D F1 of what is predicted for some videos, in seconds."""
    return 1 - float(np.mean([soda_d(each.segments, segments(each)).f1 for each in videos]))

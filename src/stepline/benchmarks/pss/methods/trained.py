"""What all trained methods share: one video at a time, an epoch chosen on validation, a model of each seed."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from stepline.benchmarks.pss.material import Material
from stepline.benchmarks.pss.methods import Method
from stepline.benchmarks.pss.predictions import Prediction
from stepline.datasets.pss import Procedure
from stepline.features.network import device_of
from stepline.metrics.soda import soda_d
from stepline.models.training import fit_head, loaded, restore
from stepline.spec import digest

if TYPE_CHECKING:
    import torch

Model = TypeVar("Model", bound="torch.nn.Module")


def device(material: Material) -> str:
    """Return where models run."""
    return device_of(material.plan.config["features"]["device"]).type


def fit_videos(
    material: Material,
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
    train, val = material.used("train"), material.used("val")
    block = material.plan.study_config[material.entry.made.options]
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
        device=device(material),
        resume=digest([material.spec, [each.video for each in [*train, *val]]]),
        what=f"{material.entry.id} on {material.dataset}, seed {seed}",
        **options,
    )


def fitted(
    material: Material,
    fits: Sequence[Path],
    build: Callable[[], Model],
    predict: Callable[[Model, int, str, Procedure], Prediction],
) -> Iterator[tuple[int, Method]]:
    """Yield each seed with its fitted model's method; raise StoreError where a checkpoint is absent or damaged."""
    for seed, path in zip(material.entry.seeds, fits, strict=True):
        with loaded(path) as parameters:
            model = restore(build(), parameters, device(material))

        def method(seed: int, split: str, procedure: Procedure, model: Model = model) -> Prediction:
            return predict(model, seed, split, procedure)

        yield seed, method


def missed(videos: Sequence[Procedure], segments: Callable[[Procedure], Sequence[tuple[float, float]]]) -> float:
    """Return 1 less the mean SODA-D F1 of what is predicted for some videos, in seconds."""
    return 1 - float(np.mean([soda_d(each.segments, segments(each)).f1 for each in videos]))

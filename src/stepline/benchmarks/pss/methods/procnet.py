"""ProcNet (Zhou et al., 2018), trained as Batra et al. did again."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

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

    from stepline.models.procnet import ProcNet, ProcNetConfig


def fit(material: Material, seed: int, path: Path) -> None:
    """Fit on train; keep the epoch of the best mean SODA-D F1 on val."""
    import torch

    from stepline.models.procnet import ProcNet

    options, config = material.plan.study_config["procnet"], _config(material)
    device = device_of(material.plan.config["features"]["device"]).type
    train, val = material.used("train"), material.used("val")

    def losses(model: ProcNet, batch: torch.Tensor) -> Iterator[torch.Tensor]:
        for index in batch.tolist():
            procedure = train[index]
            segments = (torch.tensor(procedure.segments) / procedure.duration_s).clamp(0, 1)
            yield model.loss(_features(material, procedure, device), segments.to(device))

    def val_loss(model: ProcNet) -> float:
        return -float(np.mean([soda_d(each.segments, _predicted(model, material, each, device)[0]).f1 for each in val]))

    fit_head(
        lambda: ProcNet(config),
        losses,
        val_loss,
        len(train),
        path,
        epochs=options["epochs"],
        batch_size=1,
        learning_rate=options["learning_rate"],
        seed=seed,
        device=device,
        resume=digest([material.spec, [each.video for each in train + val]]),
        weight_decay=options["weight_decay"],
        betas=(0.8, 0.999),
        factor=lambda epoch: options["decay"] ** epoch,
        what=f"{material.entry.id} on {material.dataset}, seed {seed}",
    )


def make(material: Material, fits: list[Path]) -> Iterator[tuple[int, Method]]:
    """Yield the fitted model of each seed."""
    from stepline.models.procnet import ProcNet

    device = device_of(material.plan.config["features"]["device"]).type
    for seed, path in zip(material.entry.seeds, fits, strict=True):
        made = ProcNet(_config(material))
        with loaded(path) as parameters:
            model = restore(made, parameters, device)

        def predict(seed: int, split: str, procedure: Procedure, model: ProcNet = model) -> Prediction:
            segments, scores = _predicted(model, material, procedure, device)
            return Prediction(seed=seed, split=split, video=procedure.video, segments=segments, scores=scores)

        yield seed, predict


def _config(material: Material) -> "ProcNetConfig":
    from stepline.models.procnet import ProcNetConfig

    options = material.plan.study_config["procnet"]
    return ProcNetConfig(
        feature_dim=material.dimension,
        length=options["length"],
        hidden=options["hidden"],
        kernels=(3, 8, options["anchors"]),
        max_segments=options["most_segments"],
    )


def _features(material: Material, procedure: Procedure, device: str) -> "torch.Tensor":
    import torch

    length = material.plan.study_config["procnet"]["length"]
    return torch.from_numpy(material.features(procedure.video, length)).to(device).unsqueeze(0)


def _predicted(
    model: "ProcNet", material: Material, procedure: Procedure, device: str
) -> tuple[tuple[tuple[float, float], ...], tuple[float, ...]]:
    """Return the segments in seconds, by (start, end), and their scores."""
    fractions, scores = model.predict(_features(material, procedure, device))
    seconds = (fractions.double().cpu() * procedure.duration_s).tolist()
    found = sorted((start_s, end_s, score) for (start_s, end_s), score in zip(seconds, scores.tolist(), strict=True))
    return tuple((start_s, end_s) for start_s, end_s, _ in found), tuple(score for _, _, score in found)

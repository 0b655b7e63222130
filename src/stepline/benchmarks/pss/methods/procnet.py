"""ProcNet (Zhou et al., 2018), trained as Batra et al. did again."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.benchmarks.pss.material import Material
from stepline.benchmarks.pss.methods import Method
from stepline.benchmarks.pss.methods.trained import device, fit_videos, fitted, missed
from stepline.benchmarks.pss.plan import FIRST_KERNEL, KERNEL_STEP
from stepline.benchmarks.pss.predictions import Prediction
from stepline.datasets.pss import Procedure

if TYPE_CHECKING:
    import torch

    from stepline.models.procnet import ProcNet, ProcNetConfig

BETAS = (0.8, 0.999)
"""Adam's, in all versions of ProcNet."""


def fit(material: Material, seed: int, path: Path) -> None:
    """Fit on train; keep the epoch of the best mean SODA-D F1 on val."""
    import torch

    from stepline.models.procnet import ProcNet

    def loss(model: ProcNet, procedure: Procedure) -> torch.Tensor:
        segments = (torch.tensor(procedure.segments) / procedure.duration_s).clamp(0, 1)
        return model.loss(_features(material, procedure), segments.to(device(material)))

    def val_loss(model: ProcNet, videos: Sequence[Procedure]) -> float:
        return missed(videos, lambda each: _predicted(model, material, each)[0])

    decay = material.plan.study_config["procnet"]["decay"]
    fit_videos(
        material,
        seed,
        path,
        lambda: ProcNet(_config(material)),
        loss,
        val_loss,
        betas=BETAS,
        factor=lambda epochs: decay ** int(epochs),
    )


def make(material: Material, fits: list[Path]) -> Iterator[tuple[int, Method]]:
    """Yield the fitted model of each seed."""
    from stepline.models.procnet import ProcNet

    def predict(model: ProcNet, seed: int, split: str, procedure: Procedure) -> Prediction:
        segments, scores = _predicted(model, material, procedure)
        return Prediction(seed=seed, split=split, video=procedure.video, segments=segments, scores=scores)

    yield from fitted(material, fits, lambda: ProcNet(_config(material)), predict)


def _config(material: Material) -> "ProcNetConfig":
    from stepline.models.procnet import ProcNetConfig

    options = material.plan.study_config["procnet"]
    return ProcNetConfig(
        feature_dim=material.dimension,
        length=options["length"],
        hidden=options["hidden"],
        kernels=(FIRST_KERNEL, KERNEL_STEP, options["anchors"]),
        max_segments=options["most_segments"],
    )


def _features(material: Material, procedure: Procedure) -> "torch.Tensor":
    import torch

    length = material.plan.study_config["procnet"]["length"]
    return torch.from_numpy(material.features(procedure.video, length)).to(device(material)).unsqueeze(0)


def _predicted(
    model: "ProcNet", material: Material, procedure: Procedure
) -> tuple[tuple[tuple[float, float], ...], tuple[float, ...]]:
    """Return the segments in seconds, by (start, end), and their scores."""
    fractions, scores = model.predict(_features(material, procedure))
    seconds = (fractions.double().cpu() * procedure.duration_s).tolist()
    found = sorted((start_s, end_s, score) for (start_s, end_s), score in zip(seconds, scores.tolist(), strict=True))
    return tuple((start_s, end_s) for start_s, end_s, _ in found), tuple(score for _, _, score in found)

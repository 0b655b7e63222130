"""ProcNet (Zhou et al., 2018), trained as Batra et al. did again."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline.benchmarks.pss.benchmark import FIRST_KERNEL, KERNEL_STEP
from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.methods.trained import Trained, device, fit_videos, missed
from stepline.datasets.pss import Procedure

if TYPE_CHECKING:
    import torch

    from stepline.models.procnet import ProcNet, ProcNetConfig

BETAS = (0.8, 0.999)
"""Adam's, in all versions of ProcNet."""


class ProcNetMethod(Trained["ProcNet"]):
    """ProcNet; the epoch is that of the best mean SODA-D F1 on val."""

    def fit(self, inputs: PssInputs, seed: int, path: Path) -> None:
        """Fit on train; keep the epoch of the best mean SODA-D F1 on val."""
        import torch

        def loss(model: "ProcNet", procedure: Procedure) -> torch.Tensor:
            segments = (torch.tensor(procedure.segments) / procedure.duration_s).clamp(0, 1)
            return model.loss(_features(inputs, procedure), segments.to(device(inputs)))

        def val_loss(model: "ProcNet", videos: Sequence[Procedure]) -> float:
            return missed(videos, lambda each: _predicted(model, inputs, each)[0])

        decay = inputs.options["procnet"]["decay"]
        fit_videos(
            inputs,
            seed,
            path,
            lambda: self.build(inputs),
            loss,
            val_loss,
            betas=BETAS,
            factor=lambda epochs: decay ** int(epochs),
        )

    def build(self, inputs: PssInputs) -> "ProcNet":
        """Return a model of the configured size."""
        from stepline.models.procnet import ProcNet

        return ProcNet(_config(inputs))

    def decode(self, model: "ProcNet", inputs: PssInputs, procedure: Procedure) -> dict[str, Any]:
        """Return the segments of a video and their scores."""
        segments, scores = _predicted(model, inputs, procedure)
        return {"segments": segments, "scores": scores}


def _config(inputs: PssInputs) -> "ProcNetConfig":
    from stepline.models.procnet import ProcNetConfig

    options = inputs.options["procnet"]
    return ProcNetConfig(
        feature_dim=inputs.dimension,
        length=options["length"],
        hidden=options["hidden"],
        kernels=(FIRST_KERNEL, KERNEL_STEP, options["anchors"]),
        max_segments=options["most_segments"],
    )


def _features(inputs: PssInputs, procedure: Procedure) -> "torch.Tensor":
    import torch

    length = inputs.options["procnet"]["length"]
    return torch.from_numpy(inputs.resized(procedure.video, length)).to(device(inputs)).unsqueeze(0)


def _predicted(
    model: "ProcNet", inputs: PssInputs, procedure: Procedure
) -> tuple[tuple[tuple[float, float], ...], tuple[float, ...]]:
    """Return the segments in seconds, by (start, end), and their scores."""
    fractions, scores = model.predict(_features(inputs, procedure))
    seconds = (fractions.double().cpu() * procedure.duration_s).tolist()
    found = sorted((start_s, end_s, score) for (start_s, end_s), score in zip(seconds, scores.tolist(), strict=True))
    return tuple((start_s, end_s) for start_s, end_s, _ in found), tuple(score for _, _, score in found)

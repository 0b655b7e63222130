"""ProcNet (Zhou et al. 2018), as retrained by Batra et al."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from stepline.benchmarks.pss.benchmark import FIRST_KERNEL, KERNEL_STEP
from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.methods.trained import Trained, features, fractions
from stepline.datasets.pss import Procedure

if TYPE_CHECKING:
    import torch

    from stepline.models.procnet import ProcNet, ProcNetConfig

BETAS = (0.8, 0.999)
"""Adam's betas in all versions of ProcNet."""


class ProcNetMethod(Trained["ProcNet"]):
    """ProcNet; a fit keeps the epoch of the best mean SODA-D F1 on val."""

    def build(self, inputs: PssInputs) -> "ProcNet":
        """Return a model of the configured size."""
        from stepline.models.procnet import ProcNet

        return ProcNet(_config(inputs))

    def losses(self, model: "ProcNet", inputs: PssInputs, videos: Sequence[Procedure]) -> "Iterator[torch.Tensor]":
        """Yield the loss on each video's segments."""
        for each in videos:
            yield model.loss(_features(inputs, each), fractions(inputs, each))

    def training(self, inputs: PssInputs) -> dict[str, Any]:
        """Return a batch size of one video, Adam's betas and the decay of the learning rate after each epoch."""
        decay = inputs.options["procnet"]["decay"]
        return {"batch_size": 1, "betas": BETAS, "factor": lambda epochs: decay ** int(epochs)}

    def decode(self, model: "ProcNet", inputs: PssInputs, videos: Sequence[Procedure]) -> Iterator[dict[str, Any]]:
        """Yield the segments of each video in seconds, sorted by (start, end), and their scores."""
        for each in videos:
            parts, scores = model.predict(_features(inputs, each))
            seconds = (parts.double().cpu() * each.duration_s).tolist()
            found = sorted((*part, score) for part, score in zip(seconds, scores.tolist(), strict=True))
            yield {
                "segments": tuple((start_s, end_s) for start_s, end_s, _ in found),
                "scores": tuple(score for _, _, score in found),
            }


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
    return features(inputs, procedure, inputs.options["procnet"]["length"]).unsqueeze(0)

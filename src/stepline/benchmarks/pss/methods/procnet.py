"""ProcNet (Zhou et al., 2018), trained as Batra et al. did again."""

from typing import TYPE_CHECKING, Any

from stepline.benchmarks.pss.benchmark import FIRST_KERNEL, KERNEL_STEP
from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.methods.trained import Trained, features, fractions
from stepline.datasets.pss import Procedure

if TYPE_CHECKING:
    import torch

    from stepline.models.procnet import ProcNet, ProcNetConfig

BETAS = (0.8, 0.999)
"""Adam's, in all versions of ProcNet."""


class ProcNetMethod(Trained["ProcNet"]):
    """ProcNet; the epoch is that of the best mean SODA-D F1 on val."""

    def build(self, inputs: PssInputs) -> "ProcNet":
        """Return a model of the configured size."""
        from stepline.models.procnet import ProcNet

        return ProcNet(_config(inputs))

    def loss(self, model: "ProcNet", inputs: PssInputs, procedure: Procedure) -> "torch.Tensor":
        """Return the loss on a video's segments."""
        return model.loss(_features(inputs, procedure), fractions(inputs, procedure))

    def training(self, inputs: PssInputs) -> dict[str, Any]:
        """Return Adam's betas and the decay of the step size after each epoch."""
        decay = inputs.options["procnet"]["decay"]
        return {"betas": BETAS, "factor": lambda epochs: decay ** int(epochs)}

    def decode(self, model: "ProcNet", inputs: PssInputs, procedure: Procedure) -> dict[str, Any]:
        """Return the segments of a video in seconds, by (start, end), and their scores."""
        parts, scores = model.predict(_features(inputs, procedure))
        seconds = (parts.double().cpu() * procedure.duration_s).tolist()
        found = sorted((*each, score) for each, score in zip(seconds, scores.tolist(), strict=True))
        return {
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

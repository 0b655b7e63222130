"""PDPP* (Sec. 5.2, Eq. 7): diffusion turns noise into a plan's vectors; each yields the nearest action."""

from typing import TYPE_CHECKING, Any

from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.methods.trained import Samples, Trained

if TYPE_CHECKING:
    from torch import Tensor

    from stepline.models.diffusion import PlanDiffusion


class Pdpp(Trained["PlanDiffusion"]):
    """The diffusion planner. The averaged parameters are kept."""

    def build(self, inputs: OeppInputs, samples: Samples) -> "PlanDiffusion":
        """Return a model of the configured size."""
        from stepline.models.diffusion import PlanDiffusion

        options = inputs.options["pdpp"]
        sizes = samples.text.shape[1], samples.rows.shape[1], samples.labels.shape[1]
        return PlanDiffusion(*sizes, width=options["width"], steps=options["diffusion_steps"])

    def loss(self, inputs: OeppInputs, model: "PlanDiffusion", train: Samples, batch: "Tensor") -> "Tensor":
        """Return the loss of the denoised plans."""
        from stepline.models.plan_loss import balanced_loss

        labels, actions = train.labels[batch], inputs.options["pdpp"]["actions"]
        x = model(train.observations(batch), train.text[labels] if actions == "text" else None)
        return balanced_loss(x, train.text, labels, **inputs.options["loss"])

    def vectors(self, inputs: OeppInputs, model: "PlanDiffusion", samples: Samples) -> "Tensor":
        """Return the plans. Noise is drawn on the CPU in the order of windows, so it is the same on all devices."""
        import torch

        options, size = inputs.options["pdpp"], (len(samples.index), model.horizon, model.text)
        noise = torch.randn(size, generator=torch.Generator().manual_seed(options["sampling_seed"]))
        return model.sample(samples.observations(), noise.to(samples.rows.device), n_steps=options["sampling_steps"])

    def training(self, inputs: OeppInputs) -> dict[str, Any]:
        """Return the updates per epoch, the learning-rate schedule and the average of parameters."""
        from stepline.models.diffusion import averaging, schedule

        options = inputs.options["pdpp"]
        return {
            "steps": options["steps"],
            "factor": schedule(options["epochs"]),
            "average": averaging(options["ema_decay"], options["ema_start"], options["ema_every"]),
        }

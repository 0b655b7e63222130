"""The MLP and the Transformer (Sec. 5.2): from both observations to T vectors, each read as the nearest action."""

from typing import TYPE_CHECKING, Any

from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.methods.trained import Samples, Trained

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


class Heads(Trained["Module"]):
    """The network is named as the entry's kind; the setting ``loss`` is a part of the loss, or ``both``."""

    def build(self, inputs: OeppInputs, samples: Samples) -> "Module":
        """Return a network of the published size."""
        from stepline.models.planners import MlpPlanner, TransformerPlanner

        made: type[Module] = {"mlp": MlpPlanner, "transformer": TransformerPlanner}[inputs.entry.kind_name]
        return made(samples.rows.shape[1], samples.text.shape[1], samples.labels.shape[1])

    def loss(self, inputs: OeppInputs, model: "Module", train: Samples, batch: "Tensor") -> "Tensor":
        """Return the configured loss."""
        from stepline.models.plan_loss import plan_loss

        x, which = model(train.observations(batch)), inputs.entry.settings["loss"]
        return plan_loss(x, train.text, train.labels[batch], loss=which, **inputs.options["loss"])

    def vectors(self, inputs: OeppInputs, model: "Module", samples: Samples) -> "Tensor":
        """Return what the network says."""
        found: Tensor = model(samples.observations())
        return found

    def training(self, inputs: OeppInputs) -> dict[str, Any]:
        """Return the weight decay."""
        return {"weight_decay": inputs.options["heads"]["weight_decay"]}

"""The MLP and the Transformer (Sec. 5.2), which map both observations to T vectors; each yields the nearest action."""

from typing import TYPE_CHECKING, Any

from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.methods.trained import Samples, Trained

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module


class Heads(Trained["Module"]):
    """The network of the entry's kind. The setting ``loss`` selects one part of the loss, or ``both``."""

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
        """Return the outputs of the network."""
        found: Tensor = model(samples.observations())
        return found

    def training(self, inputs: OeppInputs) -> dict[str, Any]:
        """Return the weight decay."""
        return {"weight_decay": inputs.options["heads"]["weight_decay"]}

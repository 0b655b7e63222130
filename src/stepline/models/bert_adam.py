"""The optimiser of InternVideo's fine-tuning: ``BertAdam`` of OpenGVLab/InternVideo, Video-Text-Retrieval."""

from collections.abc import Iterable
from typing import Any

import torch

BETA1, BETA2, EPS, MAX_NORM = 0.9, 0.98, 1e-6, 1.0


class BertAdam(torch.optim.Optimizer):
    """Adam without bias correction, with the gradient of each parameter clipped separately.

    m and v are running means, starting at 0, of a parameter's gradient, clipped to norm 1, and of its square. An update
    is lr (m / (sqrt(v) + 1e-6) + weight_decay parameter), with ``lr`` and ``weight_decay`` of the parameter's group.
    """

    def __init__(self, groups: Iterable[dict[str, Any]]) -> None:
        super().__init__(groups, {"lr": 0.0, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        """Update all parameters, each of which must have a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                torch.nn.utils.clip_grad_norm_(parameter, MAX_NORM)
                gradient, state = parameter.grad, self.state[parameter]
                if not state:
                    state |= {name: torch.zeros_like(parameter) for name in ("exp_avg", "exp_avg_sq")}
                mean = state["exp_avg"].mul_(BETA1).add_(gradient, alpha=1 - BETA1)
                square = state["exp_avg_sq"].mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
                update = (mean / square.sqrt().add_(EPS)).add_(parameter, alpha=group["weight_decay"])
                parameter.add_(update, alpha=-group["lr"])

"""InternVideo's optimiser against its arithmetic, written down line by line in float64."""

from collections.abc import Mapping, Sequence

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.models.bert_adam import BertAdam  # noqa: E402
from tests.gpu import GPU  # noqa: E402

Arrays = Mapping[str, np.ndarray]


class Straight:
    """The parameters as they are after each update. decays: by name, the weight decay."""

    def __init__(self, start: Arrays, decays: Mapping[str, float]) -> None:
        self.now = {name: np.array(value, np.float64) for name, value in start.items()}
        self._decays = decays
        self._mean = {name: np.zeros_like(value) for name, value in self.now.items()}
        self._square = {name: np.zeros_like(value) for name, value in self.now.items()}

    def update(self, gradients: Arrays, rate: float) -> None:
        for name, value in self.now.items():
            gradient = gradients[name] * min(1, 1 / (np.sqrt((gradients[name] ** 2).sum()) + 1e-6))
            self._mean[name] = 0.9 * self._mean[name] + 0.1 * gradient
            self._square[name] = 0.98 * self._square[name] + 0.02 * gradient**2
            step = self._mean[name] / (np.sqrt(self._square[name]) + 1e-6) + self._decays[name] * value
            self.now[name] = value - rate * step


def all_clipped(gradients: Arrays) -> dict[str, np.ndarray]:
    """Return the gradients with a norm of 1 at most, that of all of them."""
    norm = np.sqrt(sum((each**2).sum() for each in gradients.values()))
    return {name: each * min(1, 1 / (norm + 1e-6)) for name, each in gradients.items()}


def test_updates_are_those_of_the_arithmetic() -> None:
    """Gradients of norms from 1e-5, where epsilon matters, to 30, far above the clipping."""
    rng = np.random.default_rng(0)
    shapes: dict[str, Sequence[int]] = {"matrix": (5, 4), "vector": (3,), "scalar": ()}
    start = {name: rng.standard_normal(shape) for name, shape in shapes.items()}
    decays = {"matrix": 0.2, "vector": 0.0, "scalar": 0.2}
    parameters = {name: torch.nn.Parameter(torch.tensor(value)) for name, value in start.items()}
    optimiser = BertAdam([{"params": [parameters[name]], "weight_decay": decays[name]} for name in shapes])
    straight = Straight(start, decays)
    for step, size in enumerate(10 ** rng.uniform(-6, 1, 30)):
        gradients = {name: size * rng.standard_normal(shape) for name, shape in shapes.items()}
        rate = 0.01 * (step + 1)
        for group, name in zip(optimiser.param_groups, shapes, strict=True):
            group["lr"] = rate
            parameters[name].grad = torch.tensor(gradients[name])
        optimiser.step()
        straight.update(gradients, rate)
        for name, parameter in parameters.items():
            np.testing.assert_allclose(parameter.detach().numpy(), straight.now[name], rtol=1e-12, atol=1e-12)


@pytest.mark.gpu
def test_a_gpu_updates_as_a_cpu_does() -> None:
    found = []
    for device in ("cpu", GPU):
        draw = torch.Generator().manual_seed(0)
        parameter = torch.nn.Parameter(torch.randn(300, 200, generator=draw).to(device))
        optimiser = BertAdam([{"params": [parameter], "weight_decay": 0.2, "lr": 0.01}])
        for _ in range(10):
            parameter.grad = torch.randn(300, 200, generator=draw).to(device)
            optimiser.step()
        found.append(parameter.detach().cpu())
    torch.testing.assert_close(*found, rtol=1e-5, atol=1e-6)

"""The training loop: how it steps. What it keeps and how it resumes is tested with the heads that it trains."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from safetensors.torch import load_file  # noqa: E402

from stepline.models.training import fit_head  # noqa: E402


class Line(torch.nn.Module):  # type: ignore[misc,name-defined]
    def __init__(self) -> None:
        super().__init__()
        self.slope = torch.nn.Parameter(torch.tensor(1.0))


def fitted(losses: Callable[[Any, Any], Iterator[Any]], **options: Any) -> list[float]:
    """Return the slope after each epoch, of a single step."""
    slopes: list[float] = []

    def val_loss(model: Any) -> float:
        slopes.append(float(model.slope))
        return -len(slopes)

    settings = {"epochs": 3, "batch_size": 1, "learning_rate": 0.1, "seed": 0}
    fit_head(Line, losses, val_loss, 1, Path("f.safetensors"), **(settings | options))
    return slopes


def rising(model: Any, _: Any) -> Iterator[Any]:
    yield 1000 * model.slope


def nothing(model: Any, _: Any) -> Iterator[Any]:
    yield 0 * model.slope


def test_the_learning_rate_follows_its_factor() -> None:
    slopes = [1.0, *fitted(rising, factor=lambda epoch: 0.5**epoch)]
    steps = [before - after for before, after in pairwise(slopes)]
    assert steps == pytest.approx([0.1, 0.05, 0.025], rel=1e-4)


def test_weight_decay_pulls_to_zero() -> None:
    assert fitted(nothing, weight_decay=0.1)[-1] < 1
    assert fitted(nothing) == [1.0, 1.0, 1.0]


def test_the_gradient_is_cut_to_its_largest_norm() -> None:
    original = torch.optim.Adam.step
    found = []

    def step(self: Any, *args: Any) -> Any:
        found.append(float(self.param_groups[0]["params"][0].grad))
        return original(self, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.optim.Adam, "step", step)
        fitted(rising, clip=2.0)
        fitted(rising)
    assert found == pytest.approx([2.0] * 3 + [1000.0] * 3, rel=1e-5)


def test_the_moments_are_those_asked_for() -> None:
    """With a flat start, a first moment that forgets at once steps by the full rate; the usual one does too, once."""

    def turning(model: Any, _: Any) -> Iterator[Any]:
        yield (model.slope - 0.95) ** 2

    assert fitted(turning, betas=(0.0, 0.999)) != fitted(turning)


def test_the_best_epoch_is_kept() -> None:
    slopes = fitted(rising)
    assert float(load_file("f.safetensors")["slope"]) == pytest.approx(slopes[-1])

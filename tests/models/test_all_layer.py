import math
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.numpy")

from stepline.errors import ConfigError, StoreError  # noqa: E402
from stepline.models import all_layer  # noqa: E402
from stepline.models.all_layer import Recipe, train  # noqa: E402
from tests.models.test_bert_adam import Straight, all_clipped  # noqa: E402

RECIPE = Recipe(optimiser="adamw", learning_rate=0.01, weight_decay=0.2, warm_up=0.1, epochs=1, batch_size=16, seed=0)
BERT_ADAM = {"optimiser": "bert_adam"}


class Toy:
    """A small network whose classes can be learned, and what was asked of it."""

    def __init__(self, *, dtype: torch.dtype = torch.float32, scale: float = 1) -> None:
        draw = torch.Generator().manual_seed(0)
        self.inputs = scale * torch.randn(100, 4, generator=draw).to(dtype)
        self.labels = (self.inputs[:, 0] > 0).long()
        self.weight = torch.nn.Parameter(torch.randn(2, 4, generator=draw).to(dtype) / 10)
        self.bias = torch.nn.Parameter(torch.ones(2, dtype=dtype))
        self.asked: list[list[int]] = []

    @property
    def parameters(self) -> dict[str, torch.nn.Parameter]:
        return {"weight": self.weight, "bias": self.bias}

    def losses(self, samples: list[int]) -> torch.Tensor:
        self.asked.append(samples)
        logits = self.inputs[samples] @ self.weight.T + self.bias
        return torch.nn.functional.cross_entropy(logits, self.labels[samples], reduction="none")


def trained(
    path: Path, recipe: Recipe = RECIPE, *, at_once: int = 16, toy: Toy | None = None, made_from: str = "toy"
) -> dict[str, np.ndarray]:
    toy = toy or Toy()
    train(toy.parameters, toy.losses, 100, path, recipe, at_once=at_once, made_from=made_from)
    found: dict[str, np.ndarray] = safetensors.load_file(path)
    return found


def changed(**changes: float | str) -> Recipe:
    return Recipe(**(vars(RECIPE) | changes))


def test_the_rate_rises_linearly_and_falls_with_a_cosine() -> None:
    recipe = changed(learning_rate=4e-6)
    rates = [recipe.rate(step, 20) / 4e-6 for step in range(20)]
    assert rates[:3] == [0.5, 1.0, 1.0]
    assert rates[11] == pytest.approx(0.5)
    assert rates[14] == pytest.approx(0.25)
    assert rates[19] == pytest.approx((1 + math.cos(math.pi * 17 / 18)) / 2)
    assert [changed(warm_up=0).rate(step, 2) for step in range(2)] == [0.01, pytest.approx(0.005)]
    assert [changed(warm_up=1).rate(step, 2) for step in range(2)] == [0.005, 0.01]


def test_the_released_rate_begins_at_0_and_its_cosine_is_of_all_steps() -> None:
    recipe = changed(**BERT_ADAM, learning_rate=4e-6)
    rates = [recipe.rate(step, 20) / 4e-6 for step in range(20)]
    assert rates[:2] == [0, 0.5]
    assert rates[2:] == pytest.approx([(1 + math.cos(math.pi * step / 20)) / 2 for step in range(2, 20)])
    assert rates[2] == pytest.approx(0.97553, abs=1e-5)
    assert changed(**BERT_ADAM, warm_up=0).rate(0, 2) == 0.01


def test_released_updates_are_those_of_the_arithmetic(tmp_path: Path) -> None:
    """Twenty-one, by gradients of which some are clipped: all together, then one by one; no decay where a bias is."""
    toy, recipe = Toy(dtype=torch.float64, scale=4), changed(**BERT_ADAM, epochs=3, learning_rate=0.3, warm_up=0.2)
    straight = Straight(
        {name: value.detach().numpy() for name, value in toy.parameters.items()}, {"weight": 0.2, "bias": 0}
    )
    found = trained(tmp_path / "fit", recipe, toy=toy)
    inputs, labels, norms = toy.inputs.numpy(), toy.labels.numpy(), []
    for step, batch in enumerate(toy.asked):
        logits = inputs[batch] @ straight.now["weight"].T + straight.now["bias"]
        chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        assert found["loss"][step] == pytest.approx(-np.log(chances[range(len(batch)), labels[batch]]).mean(), rel=1e-9)
        off = (chances - np.eye(2)[labels[batch]]) / len(batch)
        gradients = {"weight": off.T @ inputs[batch], "bias": off.sum(0)}
        norms.append(math.hypot(*chain(*map(np.ravel, gradients.values()))))
        done = step / 21
        rate = 0.3 * (done / 0.2 if done < 0.2 else 0.5 * (1 + math.cos(math.pi * done)))
        straight.update(all_clipped(gradients), rate)
    assert len(norms) == 21
    assert max(norms) > 2
    assert min(norms) < 0.5
    for name, value in straight.now.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-12, atol=1e-12)


def test_all_but_biases_decay_as_released(tmp_path: Path) -> None:
    """Of the parameters of norms and of single vectors, too."""
    names = ("ln.weight", "ln.bias", "attn.in_proj_bias", "embedding", "logit_scale")
    parameters = {name: torch.nn.Parameter(torch.tensor(2.0)) for name in names}
    moved = {}
    for optimiser in ("bert_adam", "adamw"):
        recipe = changed(optimiser=optimiser, warm_up=0, batch_size=1)
        train(
            parameters,
            lambda _: 0 * sum(parameters.values()).reshape(1),  # type: ignore[union-attr]
            1,
            tmp_path / optimiser,
            recipe,
            at_once=1,
            made_from="",
        )
        moved[optimiser] = {name for name in names if safetensors.load_file(tmp_path / optimiser)[name] != 2}
        for parameter in parameters.values():
            parameter.data.fill_(2)
    assert moved == {"bert_adam": {"ln.weight", "embedding", "logit_scale"}, "adamw": set()}


def test_what_comes_after_a_step_is_done_before_the_next(tmp_path: Path) -> None:
    toy, largest = Toy(), []

    def after() -> None:
        largest.append(float(toy.bias.detach().max()))
        toy.bias.data.clamp_(max=0.5)

    train(toy.parameters, toy.losses, 100, tmp_path / "fit", RECIPE, at_once=16, made_from="", after=after)
    assert len(largest) == 7
    assert largest[0] > 0.9
    assert max(largest[1:]) < 0.52
    assert safetensors.load_file(tmp_path / "fit")["bias"].max() <= 0.5


def test_two_steps_are_adams_by_hand(tmp_path: Path) -> None:
    """Decay by rate x 0.2 of the matrix alone, then Adam with 0.9, 0.999 and 1e-8."""
    toy, recipe = Toy(), changed(batch_size=50, warm_up=0.5)
    start = {name: value.detach().double().numpy().copy() for name, value in toy.parameters.items()}
    found = trained(tmp_path / "fit", recipe, toy=toy, at_once=50)
    weight, bias = start["weight"], start["bias"]
    moments = [np.zeros((2, *each.shape)) for each in (weight, bias)]
    inputs, labels = toy.inputs.double().numpy(), toy.labels.numpy()
    assert sorted(chain(*toy.asked)) == list(range(100))
    for step, batch in enumerate(toy.asked):
        rate = [0.01, 0.01][step]
        logits = inputs[batch] @ weight.T + bias
        chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
        assert found["loss"][step] == pytest.approx(-np.log(chances[range(50), labels[batch]]).mean(), rel=1e-5)
        off = (chances - np.eye(2)[labels[batch]]) / 50
        updates = []
        for moment, gradient in zip(moments, (off.T @ inputs[batch], off.sum(0)), strict=True):
            moment[0] += 0.1 * (gradient - moment[0])
            moment[1] += 0.001 * (gradient**2 - moment[1])
            first, second = moment[0] / (1 - 0.9 ** (step + 1)), moment[1] / (1 - 0.999 ** (step + 1))
            updates.append(rate * first / (np.sqrt(second) + 1e-8))
        weight, bias = weight * (1 - rate * 0.2) - updates[0], bias - updates[1]
    np.testing.assert_allclose(found["weight"], weight, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found["bias"], bias, rtol=1e-4, atol=1e-6)


def test_the_loss_falls_and_each_epoch_has_an_order_of_its_own(tmp_path: Path) -> None:
    toy = Toy()
    found = trained(tmp_path / "fit", changed(epochs=20), toy=toy)
    assert len(found["loss"]) == 20 * 7
    assert found["loss"][-7:].mean() < 0.7 * found["loss"][:7].mean()
    epochs = [[*chain(*toy.asked[first : first + 7])] for first in range(0, 140, 7)]
    assert all(sorted(epoch) == list(range(100)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 20


def test_a_seed_decides_the_order(tmp_path: Path) -> None:
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        trained(tmp_path / name, changed(seed=seed))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


def test_parts_of_a_batch_add_up(tmp_path: Path) -> None:
    toy = Toy()
    whole, parts = trained(tmp_path / "whole"), trained(tmp_path / "parts", at_once=3, toy=toy)
    assert [len(part) for part in toy.asked[:6]] == [3, 3, 3, 3, 3, 1]
    assert [len(part) for part in toy.asked[-2:]] == [3, 1]
    for name, array in whole.items():
        np.testing.assert_allclose(parts[name], array, rtol=1e-4, atol=1e-6)


def test_a_loss_that_is_not_finite_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^all_layer.learning_rate: the loss of step \d+ is not finite"):
        trained(tmp_path / "fit", changed(learning_rate=1e37, warm_up=0))
    assert not list(tmp_path.iterdir())


class StoppedError(Exception):
    pass


def stop_after(toy: Toy, calls: int) -> None:
    losses = toy.losses

    def counted(samples: list[int]) -> torch.Tensor:
        if len(toy.asked) == calls:
            raise StoppedError
        return losses(samples)

    toy.losses = counted  # type: ignore[method-assign]


@pytest.mark.parametrize("optimiser", ["bert_adam", "adamw"])
def test_a_stopped_fit_goes_on_from_its_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, optimiser: str) -> None:
    monkeypatch.setattr(all_layer, "EVERY", 5)
    whole, part = tmp_path / "whole/0.safetensors", tmp_path / "part/0.safetensors"
    recipe = changed(epochs=3, optimiser=optimiser)
    trained(whole, recipe)
    toy = Toy()
    stop_after(toy, 13)
    with pytest.raises(StoppedError):
        trained(part, recipe, toy=toy)
    assert [path.name for path in part.parent.iterdir()] == ["0.safetensors.state"]
    again = Toy()
    trained(part, recipe, toy=again)
    assert again.asked[:3] == toy.asked[10:]
    assert len(again.asked) == 11
    assert part.read_bytes() == whole.read_bytes()
    assert [path.name for path in part.parent.iterdir()] == ["0.safetensors"]


@pytest.mark.parametrize(
    ("change", "made_from"),
    [({"seed": 1}, "toy"), ({"learning_rate": 0.02}, "toy"), ({"epochs": 4}, "toy"), (BERT_ADAM, "toy"), ({}, "other")],
)
def test_a_state_of_another_recipe_or_of_other_inputs_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, float | str], made_from: str
) -> None:
    monkeypatch.setattr(all_layer, "EVERY", 5)
    toy = Toy()
    stop_after(toy, 6)
    with pytest.raises(StoppedError):
        trained(tmp_path / "fit", changed(epochs=3), toy=toy)
    again = Toy()
    found = trained(tmp_path / "fit", changed(**{"epochs": 3, **change}), toy=again, made_from=made_from)
    assert len(again.asked) == len(found["loss"])


def test_a_damaged_state_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "0.safetensors.state").write_bytes(b"no tensors")
    with pytest.raises(StoreError, match=r"0.safetensors.state is damaged .*: remove it and run `stepline fit` again$"):
        trained(tmp_path / "0.safetensors")

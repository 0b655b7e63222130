"""The diffusion planner against the release's formulas, and what they do not say."""

import re
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

from stepline.models.diffusion import (  # noqa: E402
    Convolution,
    PlanDiffusion,
    TemporalUnet,
    averaging,
    schedule,
    signal,
)
from stepline.models.plan_loss import balanced_loss  # noqa: E402
from stepline.models.training import fit_head, loaded, restore  # noqa: E402
from tests.models import released_planners as released  # noqa: E402
from tests.models.released_planners import shares  # noqa: E402


def planner(network: Any = None, *, text: int = 3, observation: int = 2, horizon: int = 4, **options: int) -> Any:
    """Return a small planner, with another network where one is given."""
    torch.manual_seed(0)
    model = PlanDiffusion(text, observation, horizon, **{"width": 32, **options})
    if network is not None:
        del model.network
        model.network = network
    return model


def stirred(model: Any) -> Any:
    """Return the model with all parameters random, as few of it are at the start."""
    with torch.no_grad():
        for each in model.parameters():
            each.normal_(0.1, 0.3)
    return model


class TestSchedule:
    @pytest.mark.parametrize("steps", [10, 200, 1000])
    def test_the_signal_is_that_of_the_cosine_schedule(self, steps: int) -> None:
        torch.testing.assert_close(signal(steps), shares(steps), rtol=1e-9, atol=0)

    def test_the_last_step_leaves_a_thousandth(self) -> None:
        left = signal(200)
        assert float(left[-1] / left[-2]) == pytest.approx(0.001)
        assert float(left[0]) == pytest.approx(0.9998, abs=1e-4)

    @pytest.mark.parametrize("epochs", [120, 200])
    def test_the_rate_is_the_released_one_at_every_update(self, epochs: int) -> None:
        factor, total = schedule(epochs), epochs * 200
        found = [factor(k // 200 + k % 200 / 200) for k in range(total)]
        halved = [0.5 ** ((12 * k - 2 * total) // (3 * total)) for k in range(total)]
        expected = [6 * k / total if 6 * k <= total else halved[k] for k in range(total)]
        np.testing.assert_allclose(found, expected, rtol=1e-12)

    def test_the_average_is_the_model_at_first_and_moves_at_every_tenth_update(self) -> None:
        share = averaging()
        assert [share(k) for k in (1, 2, 10, 11, 391, 392, 401, 402, 411)] == [0, 1, 1, 0, 0, 1, 0.995, 1, 0.995]
        assert [averaging(0.5, 2, 1)(k) for k in (1, 2, 3, 4)] == [0, 0, 0.5, 0.5]


class TestConvolution:
    @pytest.mark.parametrize(("rows", "taps"), [(1, 1), (2, 3), (3, 3)])
    def test_a_tap_that_sees_nothing_but_padding_is_left_out(self, rows: int, taps: int) -> None:
        assert Convolution(5, 4, rows).weight.shape == (4, 5 * taps)

    def test_it_starts_like_torchs(self) -> None:
        bound = 1 / 96**0.5
        for rows in (1, 3):
            weight = Convolution(32, 32, rows).weight.detach()
            assert 0.98 * bound < float(weight.abs().max()) <= bound
        assert not any(each.any() for each in Convolution(32, 32, 3, zero=True).parameters())


PLACES = {
    r"^time_mlp.1": "time.0",
    r"^time_mlp.3": "time.2",
    r"^downs.(.).2.conv": r"shorter.\1",
    r"^ups.(.).2.conv": r"longer.\1",
    r"^downs.(.).0": r"down.\1.first",
    r"^downs.(.).1": r"down.\1.second",
    r"^ups.(.).0": r"up.\1.first",
    r"^ups.(.).1": r"up.\1.second",
    r"^mid_block1": "middle.first",
    r"^mid_block2": "middle.second",
    r"^final_conv.0.block.0": "last.0.convolution",
    r"^final_conv.0.block.2": "last.0.norm",
    r"^final_conv.1": "last.1",
    r"blocks.0.block.0": "first.convolution",
    r"blocks.0.block.2": "first.norm",
    r"blocks.1.block.0": "second.convolution",
    r"blocks.1.block.2": "second.norm",
    r"(?<=[.])time_mlp.1": "time",
    r"residual_conv": "beside",
}
"""Names of parameters in the release, and here."""


def placed(weights: Any, model: Any) -> dict[str, Any]:
    """Return the release's parameters, or their gradients, as those of a model."""
    found, modules = {}, dict(model.network.named_modules())
    for name, value in weights.items():
        for theirs, ours in PLACES.items():
            name = re.sub(theirs, ours, name)
        module, kind = modules[name.rpartition(".")[0]], name.rpartition(".")[2]
        if isinstance(module, Convolution) and kind == "weight":
            if name.startswith("longer"):
                value = value.transpose(0, 1).flip(2)
            value = value[:, :, list(module.taps)].mT.flatten(1)
        if name.startswith("last.1"):
            value = value[: model.text]
        found[f"network.{name}"] = value.detach().reshape(module.get_parameter(kind).shape)
    return found


def copied(horizon: int) -> tuple[Any, Any]:
    """Return a planner, and the release's parameters that it has.

    In groups of one channel, as of half the width, a bias would do nothing and Adam follow the rounding of its
    gradient.
    """
    model = PlanDiffusion(5, 2, horizon, width=64)
    model.signal = signal(model.steps)
    weights = released.unet_weights(11, 64)
    model.load_state_dict(placed(weights, model))
    return model, weights


def agree(found: Any, expected: Any) -> None:
    """Ask for equality but for rounding, relative to the largest number of each tensor."""
    assert found.shape == expected.shape
    assert (found - expected).abs().max() <= 1e-9 * expected.abs().max()


@pytest.mark.usefixtures("float64")
class TestRelease:
    @pytest.mark.parametrize("horizon", [3, 4, 5, 6])
    def test_the_network_is_the_release_s(self, horizon: int) -> None:
        model, weights = copied(horizon)
        x, steps = torch.randn(4, horizon, 11), torch.tensor([0, 20, 60, 199])
        found = model.network(x, steps)
        agree(found, released.unet(weights, x, steps)[:, :, :5])
        assert (found - model.network(x, steps + 1)).abs().amax(dim=(1, 2)).min() > 1e-3
        agree(model.network(x[:1], steps[:1]), found[:1])

    @pytest.mark.parametrize("horizon", [3, 4])
    @pytest.mark.parametrize("noised", ["zeros", "text"])
    def test_a_training_step_is_the_release_s(self, horizon: int, noised: str) -> None:
        """Which draws noise for observations too, predicts them, and overwrites both."""
        model, weights = copied(horizon)
        observed, text, labels = torch.randn(6, 12), 3 * torch.randn(9, 5), torch.randint(9, (6, horizon))
        actions = text[labels] if noised == "text" else torch.zeros(6, horizon, 5)
        torch.manual_seed(3)
        x = model(observed, actions if noised == "text" else None)
        loss = balanced_loss(x, text, labels)
        loss.backward()

        torch.manual_seed(3)
        steps, noise = torch.randint(200, (6,)), torch.randn(6, horizon, 5)
        noise = torch.cat((noise, 5 * torch.randn(6, horizon, 6)), dim=2)
        plans = released.projected(torch.cat((actions, torch.zeros(6, horizon, 6)), dim=2), observed)
        said = released.unet(weights, released.noised(plans, observed, steps, noise), steps)
        expected = released.diffusion_loss(released.projected(said, observed)[:, :, :5], text, labels)
        agree(x, said[:, :, :5])
        agree(loss, expected)
        gradients = dict(zip(weights, torch.autograd.grad(expected, [*weights.values()]), strict=True))
        for name, gradient in placed(gradients, model).items():
            agree(model.get_parameter(name).grad, gradient)
        kept = sum(int(each.grad.count_nonzero()) for each in model.parameters())
        assert kept == sum(int(each.count_nonzero()) for each in gradients.values())

    @pytest.mark.parametrize("horizon", [3, 4])
    def test_sampling_is_the_release_s(self, horizon: int) -> None:
        model, weights = copied(horizon)
        observed, noise = torch.randn(4, 12), torch.randn(4, horizon, 11)
        expected = released.sampled(lambda x, steps: released.unet(weights, x, steps), observed, noise, 200, 10)
        agree(model.sample(observed, noise[:, :, :5]), expected[:, :, :5])

    def test_a_fit_is_the_release_s(self) -> None:
        """Two epochs of three full batches: the rate of each update, AdamW, and the average of parameters."""
        observed, text, labels = torch.randn(10, 12), 3 * torch.randn(9, 5), torch.randint(9, (10, 3))
        better = count()

        def make() -> Any:
            model, _ = copied(3)
            torch.manual_seed(8)
            return model

        fit_head(
            make,
            lambda model, batch: [balanced_loss(model(observed[batch]), text, labels[batch])],
            lambda model: -float(next(better)),
            10,
            Path("fit"),
            epochs=2,
            steps=3,
            batch_size=4,
            learning_rate=1e-4,
            seed=4,
            factor=schedule(2),
            average=averaging(0.7, 2, 2),
            fused=True,
        )

        weights = released.unet_weights(11, 64)
        average, adam = {name: each.detach().clone() for name, each in weights.items()}, released.Adam(weights)
        drawn, batches = torch.Generator().manual_seed(4), list[Any]()
        while len(batches) < 6:
            batches += torch.randperm(10, generator=drawn).split(4)[:2]
        torch.manual_seed(8)
        for update, batch in enumerate(batches):
            steps, noise = torch.randint(200, (4,)), torch.randn(4, 3, 5)
            noise = torch.cat((noise, torch.zeros(4, 3, 6)), dim=2)
            x = released.noised(torch.zeros(4, 3, 11), observed[batch], steps, noise)
            said = released.unet(weights, x, steps)[:, :, :5]
            adam.update(released.diffusion_loss(said, text, labels[batch]), 1e-4 * released.rate(update, 6))
            if update % 2 == 0:
                share = 0.0 if update < 2 else 0.7
                average = {name: share * average[name] + (1 - share) * each.detach() for name, each in weights.items()}
        model, _ = copied(3)
        with loaded(Path("fit")) as state:
            for name, expected in placed(average, model).items():
                np.testing.assert_allclose(state[name], expected.numpy(), rtol=0, atol=1e-11)
                assert np.abs(state[name] - model.get_parameter(name).detach().numpy()).max() > 1e-5


class TestTemporalUnet:
    def test_untrained_it_says_its_bias_and_its_blocks_add_nothing(self) -> None:
        net = TemporalUnet(7, 5, 3, width=32)
        x, time = torch.randn(2, 3, 7), torch.randn(2, 32)
        assert torch.equal(net(x, torch.tensor([3, 199])), net.last[1].bias.expand(2, 3, 5))
        block = net.down[0].first
        assert torch.equal(block(x, time), block.beside(x))
        assert torch.equal(net.down[0].second(x := torch.randn(2, 3, 32), time), x)

    def test_others_than_it_can_be_are_refused(self) -> None:
        for width in (0, 48):
            with pytest.raises(ValueError, match=f"width is {width}, not a multiple of 32"):
                TemporalUnet(7, 5, 3, width=width)
        with pytest.raises(ValueError, match="a plan of 2 actions is too short for 3 levels"):
            TemporalUnet(7, 5, 2, width=32)


class Watch(torch.nn.Module):  # type: ignore[misc,name-defined]
    """A network that keeps what it is given, and says what ``answer`` makes of it."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer, self.seen = answer, list[Any]()

    def forward(self, x: Any, steps: Any) -> Any:
        self.seen.append((x, steps))
        return self.answer(x[..., :3], steps)


class TestTraining:
    def test_it_learns_which_plan_its_observations_ask_for(self) -> None:
        generator = torch.Generator().manual_seed(1)
        event = torch.arange(160) % 6
        observed = torch.randn(6, 12, generator=generator)[event] + 0.1 * torch.randn(160, 12, generator=generator)
        classes = torch.randint(4, (6, 3), generator=generator)[event]
        plans = torch.eye(4)[classes]
        noise = torch.randn(32, 3, 4, generator=generator)

        def missed(model: Any) -> float:
            return float((model.sample(observed[128:], noise).argmax(dim=2) != classes[128:]).double().mean())

        def fit(path: Path, **options: Any) -> Any:
            fit_head(
                lambda: PlanDiffusion(4, 2, 3, width=32),
                lambda model, batch: [functional.mse_loss(model(observed[batch]), plans[batch])],
                missed,
                128,
                path,
                batch_size=32,
                learning_rate=2e-3,
                seed=3,
                factor=schedule(options["epochs"]),
                average=averaging(0.8, 20, 2),
                fused=True,
                **options,
            )
            with loaded(path) as state:
                return missed(restore(PlanDiffusion(4, 2, 3, width=32), state, "cpu"))

        assert missed(planner(text=4, horizon=3)) > 0.5
        assert fit(Path("fit"), epochs=4, steps=30) < 0.25
        fit(Path("once"), epochs=1, steps=2)
        fit(Path("again"), epochs=1, steps=2)
        assert Path("once").read_bytes() == Path("again").read_bytes()


class TestSampling:
    @pytest.mark.usefixtures("float64")
    @pytest.mark.parametrize(("steps", "n_steps"), [(200, 10), (200, 1), (205, 10), (10, 10)])
    def test_it_is_ddim_of_any_number_of_steps(self, steps: int, n_steps: int) -> None:
        def answer(x: Any, step: Any) -> Any:
            return 0.7 * x.tanh() + step[:, None, None].sin() - 0.2 * x.flip(1)

        model, noise = planner(Watch(answer), steps=steps), torch.randn(5, 4, 3)
        model.signal = signal(steps)
        expected = released.sampled(answer, torch.zeros(5, 0), noise, steps, n_steps)
        agree(model.sample(torch.zeros(5, 12), noise, n_steps=n_steps), expected)

    def test_more_steps_than_there_are_are_refused(self) -> None:
        for n_steps in (0, 201):
            with pytest.raises(ValueError, match=rf"n_steps is {n_steps}, not in 1\.\.200"):
                planner().sample(torch.zeros(1, 12), torch.zeros(1, 4, 3), n_steps=n_steps)

    def test_a_checkpoint_holds_what_is_learned(self) -> None:
        model = planner()
        assert model.state_dict().keys() == {name for name, _ in model.named_parameters()}

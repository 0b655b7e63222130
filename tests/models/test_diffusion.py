"""The diffusion planner against the textbook: convolutions of torch, and schedule and sampler in numpy's float64."""

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
from stepline.models.training import fit_head, loaded, restore  # noqa: E402


def shares(steps: int) -> np.ndarray:
    """Return what is left of the signal after each step, by its definition through the noise that each step adds."""
    angle = (np.linspace(0, 1, steps + 1) + 0.008) / 1.008 * np.pi / 2
    betas = 1 - np.cos(angle[1:]) ** 2 / np.cos(angle[:-1]) ** 2
    return np.cumprod(1 - np.minimum(betas, 0.999))


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
        np.testing.assert_allclose(signal(steps).numpy(), shares(steps), rtol=1e-9)

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
    @pytest.mark.parametrize(
        ("rows", "kernel", "padding"),
        [*((rows, kernel, 1) for rows in (1, 2, 3, 6) for kernel in (2, 3)), (2, 2, 0), (3, 2, 0), (6, 2, 0)],
    )
    def test_it_is_torchs(self, rows: int, kernel: int, padding: int) -> None:
        made = stirred(Convolution(5, 4, rows, kernel=kernel, padding=padding).double())
        x = torch.randn(2, rows, 5, dtype=torch.float64)
        weight = torch.full((4, 5, kernel), 7.0, dtype=torch.float64)
        weight[:, :, list(made.taps)] = made.weight.detach().view(4, len(made.taps), 5).mT
        expected = functional.conv1d(x.mT, weight, made.bias, padding=padding).mT
        torch.testing.assert_close(made(x), expected)
        if kernel == 2 and padding:
            turned = weight.flip(2).transpose(0, 1)
            torch.testing.assert_close(functional.conv_transpose1d(x.mT, turned, made.bias).mT, expected)

    @pytest.mark.parametrize(("rows", "taps"), [(1, 1), (2, 3), (3, 3)])
    def test_a_tap_that_sees_nothing_but_padding_is_left_out(self, rows: int, taps: int) -> None:
        assert Convolution(5, 4, rows).weight.shape == (4, 5 * taps)

    def test_it_starts_like_torchs(self) -> None:
        bound = 1 / 96**0.5
        for rows in (1, 3):
            weight = Convolution(32, 32, rows).weight.detach()
            assert 0.98 * bound < float(weight.abs().max()) <= bound
        assert not any(each.any() for each in Convolution(32, 32, 3, zero=True).parameters())


class Textbook:
    """The U-Net's function in torch's own convolutions, with all of their taps, channels before rows."""

    def __init__(self, net: Any) -> None:
        self.net: Any = net

    def convolution(self, made: Any, x: Any, kernel: int = 3) -> Any:
        outputs, inputs = len(made.weight), x.shape[1]
        weight = torch.zeros(outputs, inputs, kernel, dtype=x.dtype)
        weight[:, :, list(made.taps)] = made.weight.detach().view(outputs, -1, inputs).mT
        return functional.conv1d(x, weight, made.bias, padding=made.padding)

    def block(self, made: Any, x: Any) -> Any:
        x = self.convolution(made.convolution, x)
        grouped = x.reshape(len(x), 32, -1)
        mean, std = grouped.mean(2, keepdim=True), (grouped.var(2, correction=0, keepdim=True) + 1e-5).sqrt()
        x = ((grouped - mean) / std).view_as(x) * made.norm.weight[:, None] + made.norm.bias[:, None]
        return x * torch.log1p(x.exp()).tanh()

    def pair(self, made: Any, x: Any, time: Any) -> Any:
        for each in (made.first, made.second):
            beside = each.beside(x.mT).mT
            x = self.block(each.second, self.block(each.first, x) + each.time(time)[..., None]) + beside
        return x

    def __call__(self, x: Any, steps: Any) -> Any:
        net, half = self.net, self.net.width // 2
        angle = steps[:, None].double() * torch.exp(-np.log(10_000) / (half - 1) * torch.arange(half).double())
        time = net.time(torch.cat((angle.sin(), angle.cos()), dim=1))
        first = self.pair(net.down[0], x.mT, time)
        second = self.pair(net.down[1], self.convolution(net.shorter[0], first, 2), time)
        third = self.pair(net.down[2], self.convolution(net.shorter[1], second, 2), time)
        x = torch.cat((self.pair(net.middle, third, time), third), dim=1)
        x = self.convolution(net.longer[0], self.pair(net.up[0], x, time), 2)
        x = self.convolution(net.longer[1], self.pair(net.up[1], torch.cat((x, second), dim=1), time), 2)
        return net.last[1](self.block(net.last[0], x).mT)


class TestTemporalUnet:
    @pytest.mark.parametrize("rows", [3, 4, 5, 6])
    def test_it_is_the_textbooks(self, rows: int) -> None:
        net = stirred(TemporalUnet(7, 5, rows, width=32).double())
        x, steps = torch.randn(3, rows, 7, dtype=torch.float64), torch.tensor([0, 60, 199])
        torch.testing.assert_close(net(x, steps.double()), Textbook(net)(x, steps), rtol=1e-8, atol=1e-8)

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
    def test_embeddings_get_the_noise_of_their_step_and_observations_none(self) -> None:
        watch = Watch(lambda x, _: x)
        observed, actions = torch.randn(4000, 12), torch.randn(4000, 4, 3)
        planner(watch)(observed, actions)
        (x, steps), left = watch.seen[0], torch.tensor(shares(200))
        noise = (x[..., :3] - left[steps, None, None].sqrt() * actions) / (1 - left[steps, None, None]).sqrt()
        assert float(noise.mean()) == pytest.approx(0, abs=0.02)
        assert float(noise.var()) == pytest.approx(1, abs=0.03)
        assert noise.flatten(1).T.corrcoef().fill_diagonal_(0).abs().max() < 0.08
        assert (int(steps.min()), int(steps.max())) == (0, 199)
        assert float(steps.double().mean()) == pytest.approx(99.5, abs=4)
        assert torch.equal(x[:, 0, 3:], observed[:, :6])
        assert torch.equal(x[:, -1, 3:], observed[:, 6:])
        assert not x[:, 1:-1, 3:].any()

    def test_as_released_there_is_nothing_but_noise_in_them(self) -> None:
        watch = Watch(lambda x, _: x)
        model, observed = planner(watch), torch.randn(5, 12)
        for actions in (None, torch.zeros(5, 4, 3)):
            torch.manual_seed(7)
            model(observed, actions)
        assert torch.equal(watch.seen[0][0], watch.seen[1][0])

    @pytest.mark.parametrize("horizon", [3, 4, 5, 6])
    def test_every_horizon_has_its_shapes_and_gradients(self, horizon: int) -> None:
        model = stirred(planner(horizon=horizon))
        found = model(torch.randn(5, 12))
        assert found.shape == (5, horizon, 3)
        found.square().sum().backward()
        assert all(each.grad.abs().amax() > 0 for each in model.parameters())
        assert model.sample(torch.randn(5, 12), torch.randn(5, horizon, 3)).shape == (5, horizon, 3)

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
    def test_a_network_that_knows_the_plan_gives_it(self) -> None:
        plan = torch.randn(5, 4, 3)
        watch = Watch(lambda *_: plan)
        found = planner(watch).sample(observed := torch.randn(5, 12), torch.randn(5, 4, 3))
        assert torch.equal(found, plan)
        assert [int(steps[0]) for _, steps in watch.seen] == [*range(180, -1, -20)]
        for x, steps in watch.seen:
            assert steps.unique().numel() == 1
            assert torch.equal(x[:, 0, 3:], observed[:, :6])
            assert torch.equal(x[:, -1, 3:], observed[:, 6:])
            assert not x[:, 1:-1, 3:].any()

    @pytest.mark.parametrize(("steps", "n_steps"), [(200, 10), (200, 1), (205, 10), (10, 10)])
    def test_it_is_ddim_by_the_noise_that_it_finds(self, steps: int, n_steps: int) -> None:
        def answer(x: Any, step: Any) -> Any:
            return np.tanh(x) * 0.7 + np.sin(step)[:, None, None] - 0.2 * x[:, ::-1]

        noise = torch.randn(5, 4, 3, generator=torch.Generator().manual_seed(2))
        watch = Watch(lambda x, step: torch.from_numpy(answer(x.double().numpy(), step.numpy())).float())
        found = planner(watch, steps=steps).sample(torch.zeros(5, 12), noise, n_steps=n_steps)

        x, left = noise.double().numpy(), shares(steps)
        grid = [*range(0, steps, steps // n_steps)][:n_steps]
        for now, then in zip(grid[::-1], [*grid[-2::-1], None], strict=True):
            plan = answer(x, np.full(5, now))
            added = (x / np.sqrt(left[now]) - plan) / np.sqrt(1 / left[now] - 1)
            kept = 1.0 if then is None else left[then]
            x = np.sqrt(kept) * plan + np.sqrt(1 - kept) * added
        np.testing.assert_allclose(found.numpy(), x, atol=1e-4)

    def test_its_noise_alone_decides(self) -> None:
        model, observed = stirred(planner()), torch.randn(5, 12)
        noise = torch.randn(2, 5, 4, 3)
        once, again = (model.sample(observed, noise[0]) for _ in range(2))
        assert torch.equal(once, again)
        assert not torch.allclose(once, model.sample(observed, noise[1]))
        assert not once.requires_grad

    def test_more_steps_than_there_are_are_refused(self) -> None:
        for n_steps in (0, 201):
            with pytest.raises(ValueError, match=rf"n_steps is {n_steps}, not in 1\.\.200"):
                planner().sample(torch.zeros(1, 12), torch.zeros(1, 4, 3), n_steps=n_steps)

    def test_a_checkpoint_holds_what_is_learned(self) -> None:
        model = planner()
        assert model.state_dict().keys() == {name for name, _ in model.named_parameters()}

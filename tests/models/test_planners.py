from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from stepline.models.plan_loss import plan_loss  # noqa: E402
from stepline.models.planners import MlpPlanner, TransformerPlanner  # noqa: E402
from stepline.models.training import fit_head, loaded  # noqa: E402
from tests.models import released_planners as released  # noqa: E402

D, E, T = 4, 5, 3
PLANNERS = MlpPlanner, TransformerPlanner


def made(kind: type[nn.Module], seed: int = 0, **sizes: int) -> nn.Module:
    torch.manual_seed(seed)
    return kind(**({"observation": D, "text": E, "horizon": T} | sizes))


def observed(n: int = 2) -> torch.Tensor:
    return torch.randn(n, 6 * D, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("kind", PLANNERS)
def test_a_planner_gives_a_vector_for_each_action(kind: type[nn.Module]) -> None:
    for horizon in (1, 6):
        assert made(kind, horizon=horizon)(observed()).shape == (2, horizon, E)
    assert torch.equal(made(kind).eval()(observed()), made(kind).eval()(observed()))


def test_the_heads_start_as_linear_layers_of_their_own() -> None:
    heads = made(MlpPlanner, observation=200, text=50).layers[-2]
    for values in (heads.weight.detach(), heads.bias.detach()):
        bound = 400**-0.5
        assert values.abs().max() <= bound
        assert float(values.std()) == pytest.approx(bound / 3**0.5, rel=0.1)


def test_only_the_mlp_drops_out_and_only_in_training() -> None:
    mlp, transformer = made(MlpPlanner), made(TransformerPlanner)
    assert not torch.equal(mlp(observed()), mlp(observed()))
    assert torch.equal(transformer(observed()), transformer(observed()))
    with torch.inference_mode():
        assert torch.allclose(transformer.eval()(observed()), transformer.train()(observed()), atol=1e-6)
        mlp.eval()
        assert torch.equal(mlp(observed()), mlp(observed()))
        none = made(MlpPlanner, dropout=0).train()
        assert torch.equal(none(observed()), mlp(observed()))


PLACES = {
    MlpPlanner: {"layers.0": "linear1", "layers.3": "linear2", "layers.6": "linears"},
    TransformerPlanner: {
        "layers.0": "state_encoder.0",
        "layers.3": "state_encoder.2",
        "layers.6": "state_linears",
        "attention.self_attn": "self_attention_layers.0",
        "attention.self_attn.out_proj": "self_attention_layers.0.out_proj",
        "attention.linear1": "feed_forward_layers.0.0",
        "attention.linear2": "feed_forward_layers.0.2",
        "attention.norm1": "attention_norm_layers.0",
        "attention.norm2": "ffn_norm_layers.0",
        "last": "out_linear",
    },
}
"""Names of layers here, and in the release."""


def placed(weights: dict[str, Any], model: nn.Module) -> dict[str, Any]:
    """Return the release's parameters, or their gradients, as those of a model."""
    found = {}
    for name, each in model.named_parameters():
        layer, _, kind = name.rpartition(".")
        theirs = PLACES[type(model)][layer]
        horizon = sum(other.startswith(f"{theirs}.") for other in weights) // 2 if layer == "layers.6" else 0
        parts = [weights[f"{theirs}.{step}.{kind}"] for step in range(horizon)] or [weights[f"{theirs}.{kind}"]]
        found[name] = torch.cat(parts).detach()
        assert found[name].shape == each.shape
    assert sum(map(torch.numel, found.values())) == sum(map(torch.numel, weights.values()))
    return found


RELEASED = {
    MlpPlanner: (released.mlp_weights, released.mlp),
    TransformerPlanner: (released.transformer_weights, released.transformer),
}


def copied(kind: type[nn.Module], horizon: int) -> tuple[nn.Module, dict[str, Any]]:
    """Return a planner, and the release's parameters that it has."""
    model, weights = kind(8, 8, horizon), RELEASED[kind][0](8, horizon)
    model.load_state_dict(placed(weights, model))
    return model, weights


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("kind", PLANNERS)
class TestRelease:
    @pytest.mark.parametrize("horizon", [3, 4, 5, 6])
    def test_the_network_is_the_release_s(self, kind: type[nn.Module], horizon: int) -> None:
        model, weights = copied(kind, horizon)
        seen = torch.randn(4, 48)
        torch.testing.assert_close(model.eval()(seen), RELEASED[kind][1](weights, seen), rtol=1e-9, atol=1e-9)

    @pytest.mark.parametrize("horizon", [3, 4])
    def test_a_training_step_is_the_release_s(self, kind: type[nn.Module], horizon: int) -> None:
        """With the dropout of the same draws."""
        model, weights = copied(kind, horizon)
        seen, text, labels = torch.randn(6, 48), 3 * torch.randn(9, 8), torch.randint(9, (6, horizon))
        torch.manual_seed(1)
        loss = plan_loss(model(seen), text, labels, loss="both")
        loss.backward()
        torch.manual_seed(1)
        dropped = {"dropout": 0.3} if kind is MlpPlanner else {}
        expected = released.heads_loss(RELEASED[kind][1](weights, seen, **dropped), text, labels)
        torch.testing.assert_close(loss, expected, rtol=1e-9, atol=0)
        gradients = dict(zip(weights, torch.autograd.grad(expected, [*weights.values()]), strict=True))
        for name, gradient in placed(gradients, model).items():
            assert (model.get_parameter(name).grad - gradient).abs().max() <= 1e-9 * gradient.abs().max()

    def test_a_fit_is_the_release_s(self, kind: type[nn.Module]) -> None:
        """Adam with decay in the gradient, the last batch what is left."""
        seen, text, labels = torch.randn(10, 48), 3 * torch.randn(9, 8), torch.randint(9, (10, 3))
        better = count()

        def make() -> nn.Module:
            model, _ = copied(kind, 3)
            torch.manual_seed(8)
            return model

        fit_head(
            make,
            lambda model, batch: [plan_loss(model(seen[batch]), text, labels[batch], loss="both")],
            lambda model: -float(next(better)),
            10,
            Path("fit"),
            epochs=2,
            batch_size=4,
            learning_rate=1e-3,
            seed=4,
            weight_decay=0.1,
            fused=True,
        )

        _, weights = copied(kind, 3)
        adam, drawn = released.Adam(weights, 0.1), torch.Generator().manual_seed(4)
        batches = [batch for _ in range(2) for batch in torch.randperm(10, generator=drawn).split(4)]
        torch.manual_seed(8)
        dropped = {"dropout": 0.3} if kind is MlpPlanner else {}
        for batch in batches:
            said = RELEASED[kind][1](weights, seen[batch], **dropped)
            adam.update(released.heads_loss(said, text, labels[batch]), 1e-3)
        model, _ = copied(kind, 3)
        with loaded(Path("fit")) as state:
            for name, expected in placed(weights, model).items():
                np.testing.assert_allclose(state[name], expected.numpy(), rtol=0, atol=1e-10)
                assert np.abs(state[name] - model.get_parameter(name).detach().numpy()).max() > 1e-3

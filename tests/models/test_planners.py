import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from stepline.models.planners import MlpPlanner, TransformerPlanner  # noqa: E402

D, E, T = 4, 5, 3
PLANNERS = MlpPlanner, TransformerPlanner


def made(kind: type[nn.Module], seed: int = 0, **sizes: int) -> nn.Module:
    torch.manual_seed(seed)
    return kind(**({"observation": D, "text": E, "horizon": T} | sizes))


def observed(n: int = 2) -> torch.Tensor:
    return torch.randn(n, 6 * D, generator=torch.Generator().manual_seed(1))


def count(model: nn.Module) -> int:
    return sum(each.numel() for each in model.parameters())


@pytest.mark.parametrize("kind", PLANNERS)
def test_a_planner_gives_a_vector_for_each_action(kind: type[nn.Module]) -> None:
    for horizon in (1, 6):
        assert made(kind, horizon=horizon)(observed()).shape == (2, horizon, E)
    assert torch.equal(made(kind).eval()(observed()), made(kind).eval()(observed()))


def test_the_parameters_are_those_of_the_layers() -> None:
    mlp = (6 * D + 1) * 4 * D + (4 * D + 1) * 2 * D + T * (2 * D + 1) * E
    assert count(made(MlpPlanner)) == mlp
    square, norms = E * E + E, 2 * 2 * E
    assert count(made(TransformerPlanner)) == mlp + 4 * square + 2 * square + norms + square


def test_the_heads_start_as_linear_layers_of_their_own() -> None:
    heads = made(MlpPlanner, observation=200, text=50).layers[-2]
    for values in (heads.weight.detach(), heads.bias.detach()):
        bound = 400**-0.5
        assert values.abs().max() <= bound
        assert float(values.std()) == pytest.approx(bound / 3**0.5, rel=0.1)


def test_a_head_plans_its_own_step() -> None:
    model = made(MlpPlanner).eval()
    before = model(observed())
    with torch.no_grad():
        model.layers[-2].bias[E : 2 * E] += 1
    assert torch.allclose(model(observed()) - before, torch.tensor([0.0, 1, 0])[:, None].expand(2, T, E), atol=1e-6)
    assert not torch.allclose(before[:, 0], before[:, 1])


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


def test_without_heads_of_their_own_steps_differ_by_their_positions() -> None:
    model = made(TransformerPlanner)
    with torch.no_grad():
        for values in (model.layers[-2].weight, model.layers[-2].bias):
            values.view(T, E, -1).copy_(values.view(T, E, -1)[:1].clone())
    planned = model(observed())
    assert not torch.allclose(planned[:, 0], planned[:, 1])
    model.positions.zero_()
    planned = model(observed())
    assert torch.allclose(planned[:, 0], planned[:, 1], atol=1e-6)


def test_positions_are_sines_and_cosines() -> None:
    positions = made(TransformerPlanner, horizon=7).positions
    for place in range(E):
        angle = torch.arange(7) / 10000 ** ((place - place % 2) / E)
        assert torch.allclose(positions[:, place], angle.cos() if place % 2 else angle.sin(), atol=1e-6)
    assert "positions" not in made(TransformerPlanner).state_dict()


def test_the_layer_attends_by_one_head_and_normalises_after() -> None:
    model = made(TransformerPlanner)
    layer = model.attention
    x = model.layers(observed()) + model.positions
    projected = nn.functional.linear(x, layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias)
    query, key, value = projected.chunk(3, dim=-1)
    weights = (query @ key.transpose(1, 2) / E**0.5).softmax(dim=-1)
    x = layer.norm1(x + layer.self_attn.out_proj(weights @ value))
    x = layer.norm2(x + layer.linear2(layer.linear1(x).relu()))
    assert torch.allclose(model(observed()), model.last(x), atol=1e-5)

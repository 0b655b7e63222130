import math

import pytest

torch = pytest.importorskip("torch")

from stepline.models.plan_loss import balanced_loss, plan_loss, read_out, similarities  # noqa: E402


def made_up(seed: int = 0, batch: int = 2, steps: int = 3, pool: int = 5, size: int = 6) -> tuple[torch.Tensor, ...]:
    draw = torch.Generator().manual_seed(seed)
    x, text = torch.randn(batch, steps, size, generator=draw), 3 * torch.randn(pool, size, generator=draw)
    return x.double(), text.double(), torch.randint(pool, (batch, steps), generator=draw)


def test_similarities_are_cosines_and_those_of_nothing_0() -> None:
    x, text, _ = made_up()
    x[0, 0], text[1] = 0, 0
    found = similarities(x, text)
    assert torch.allclose(found, torch.cosine_similarity(x[:, :, None], text, dim=-1))
    assert not found[0, 0].any()
    assert not found[:, :, 1].any()


def test_the_read_out_does_not_see_lengths() -> None:
    x, text, _ = made_up()
    read = read_out(x, text)
    assert torch.equal(read_out(7 * x, text * torch.arange(1, 6)[:, None]), read)
    assert torch.equal(read_out(text[read], text), read)
    assert not read_out(torch.zeros_like(x), text).any()


def test_of_actions_with_one_vector_the_first_is_read_whatever_rounding_does(monkeypatch: pytest.MonkeyPatch) -> None:
    def rounded(x: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        return similarities(x, text) + 1e-7 * torch.arange(len(text))

    _, text, _ = made_up()
    text = text.float()[[0, 1, 2, 1, 0, 4, 1]]
    assert read_out(text[None] / 3, text).tolist() == [[0, 1, 2, 1, 0, 5, 1]]
    monkeypatch.setattr("stepline.models.plan_loss.similarities", rounded)
    assert read_out(text[None] / 3, text).tolist() == [[0, 1, 2, 1, 0, 5, 1]]


def test_the_loss_is_written_out() -> None:
    x, text, labels = made_up()
    ce = twice = mse = 0.0
    for step in range(3):
        for row in range(2):
            cosines = [float(torch.cosine_similarity(x[row, step], each, dim=0)) / 0.1 for each in text]
            label = int(labels[row, step])
            odds = [math.exp(each) / sum(map(math.exp, cosines)) for each in cosines]
            ce += -math.log(odds[label]) / 2
            twice += (math.log(sum(map(math.exp, odds))) - odds[label]) / 2
            mse += float(((x[row, step] - text[label]) ** 2).mean()) / 2
    found = [float(plan_loss(x, text, labels, loss=loss)) for loss in ("both", "ce", "mse")]
    assert found == pytest.approx([twice + 0.2 * mse, twice, 0.2 * mse])
    weighted = plan_loss(x, text, labels, loss="both", ce_mode="plain", ce_weight=3, mse_weight=2)
    assert float(weighted) == pytest.approx(3 * ce + 2 * mse)


def test_a_balanced_loss_is_its_weights_and_its_gradient_that_of_logarithms() -> None:
    x, text, labels = made_up()
    x.requires_grad_()
    found = balanced_loss(x, text, labels)
    assert found.item() == pytest.approx(3 * 1.2)
    logs = sum(
        weight * plan_loss(x[:, [step]], text, labels[:, [step]], loss=loss).log()
        for step in range(3)
        for loss, weight in (("ce", 1.0), ("mse", 0.2))
    )
    (gradient,), (expected,) = torch.autograd.grad(found, x), torch.autograd.grad(logs, x)
    assert torch.allclose(gradient, expected)


def test_a_term_that_is_0_is_left_out_of_a_balanced_loss() -> None:
    _, text, labels = made_up()
    x = text[labels].clone().requires_grad_()
    found = balanced_loss(x, text, labels)
    assert found.item() == pytest.approx(3 * 1.0)
    found.backward()
    assert x.grad.isfinite().all()

"""Local attention against a dense banded softmax, and the branches of a block."""

import pytest

torch = pytest.importorskip("torch")

from stepline.models.actionformer_layers import PADDED, SPAN, Branch, local_attention  # noqa: E402


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("length", [1, 7, SPAN, SPAN + 1, 3 * SPAN - 5])
@pytest.mark.parametrize("window", [3, 9])
@pytest.mark.parametrize("relative", [False, True])
def test_local_attention_is_a_banded_softmax(length: int, window: int, relative: bool) -> None:
    draw = torch.Generator().manual_seed(length)
    query, key, value = (torch.randn(2, 3, length, 4, generator=draw) for _ in range(3))
    bias = torch.randn(3, window, generator=draw) if relative else None
    there = torch.ones(2, 1, length)
    there[1, :, max(1, length - 3) :] = 0
    made = [each.clone().requires_grad_() for each in (query, key, value)]
    found = local_attention(*made, there, window, bias)
    expected = torch.zeros_like(value)
    for b in range(2):
        for i in range(length):
            near = [j for j in range(length) if abs(i - j) <= window // 2 and there[b, 0, j]]
            if not there[b, 0, i]:
                continue
            for h in range(3):
                scores = query[b, h, i] @ key[b, h, near].T / 2
                if bias is not None:
                    scores = scores + bias[h, [j - i + window // 2 for j in near]]
                expected[b, h, i] = scores.softmax(dim=0) @ value[b, h, near]
    real = there[:, None, 0, :, None]
    torch.testing.assert_close(found * real, expected, rtol=1e-12, atol=1e-12)
    (found * real).sum().backward()
    assert all(torch.isfinite(each.grad).all() for each in made)
    assert made[2].grad[1][:, ~there[1, 0].bool()].abs().max() == 0 if length > 3 else True


def test_padding_has_no_weight_in_float32() -> None:
    assert torch.tensor([0.0, PADDED]).softmax(dim=0).tolist() == [1, 0]


def test_a_branch_is_left_out_for_whole_samples_and_keeps_its_mean() -> None:
    torch.manual_seed(0)
    branch, rows = Branch(2, 0.4), torch.ones(4000, 2, 3)
    assert branch.scale.min().item() == pytest.approx(1e-4)
    torch.nn.init.constant_(branch.scale, 2)
    found = branch(rows).detach()
    assert {round(float(value), 4) for value in found.unique()} == {0, round(2 / 0.6, 4)}
    assert (found == found[:, :1, :1]).all()
    assert float(found.mean()) == pytest.approx(2, rel=0.05)
    assert (branch.eval()(rows) == 2).all()

"""The network of UMT: padding, losses, and what it begins with."""

from math import log
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from stepline.models.umt import Scores, Umt  # noqa: E402
from stepline.models.umt_config import UmtConfig  # noqa: E402
from stepline.models.umt_layers import Attention, Positions  # noqa: E402
from stepline.models.umt_moments import Targets, targets  # noqa: E402
from tests.models.umt import SIZES, alone, network, queries  # noqa: E402

BATCH = (12, 4), (7, 3), (9, 5)
SEGMENTS = [torch.tensor(each) for each in ([[2.0, 6.0], [9.0, 10.0]], [[1.0, 5.0]], [[0.0, 7.0]])]


def losses(model: Umt, batch: Any, segments: Any) -> dict[str, float]:
    learned = targets(segments, batch.there.shape[1], model.config)
    saliency = (torch.arange(batch.there.shape[1]) / 12).expand(batch.there.shape)
    found = model.losses(model(batch), batch.there, saliency, learned)
    return {name: each.item() for name, each in found.items()}


def test_masked_padding_changes_nothing_and_attended_padding_does() -> None:
    batch = queries(*BATCH)
    for padding, same in (("masked", True), ("attended", False)):
        model = network(padding=padding)
        together = model(batch)
        for number, (length, _) in enumerate(BATCH):
            for all_of, own in zip(together, model(alone(batch, number)), strict=True):
                close = torch.allclose(all_of[[number], :length], own, rtol=1e-4, atol=1e-5)
                assert close == (same or length == 12)


def test_with_masked_padding_losses_are_those_of_rows_and_moments_alone() -> None:
    model, batch = network(padding="masked"), queries(*BATCH)
    together = losses(model, batch, SEGMENTS)
    parts = [losses(model, alone(batch, number), [SEGMENTS[number]]) for number in range(3)]
    shares = [length / 28 for length, _ in BATCH], [0.5, 0.25, 0.25]
    for name, value in together.items():
        each = zip(shares[name != "saliency"], parts, strict=True)
        assert value == pytest.approx(sum(share * part[name] for share, part in each), rel=1e-4)


def test_the_loss_reaches_every_parameter() -> None:
    model, batch = network(), queries(*BATCH)
    learned = targets(SEGMENTS, 12, model.config)
    torch.stack([*model.losses(model(batch), batch.there, torch.ones(3, 12), learned).values()]).sum().backward()
    assert not [name for name, each in model.named_parameters() if each.grad is None or not each.grad.any()]


def test_positions_are_in_queries_and_keys_and_not_in_values() -> None:
    """Where all keys are attended to alike, positions have no effect."""
    model, batch = network(), queries(*BATCH)
    tables = []
    with torch.no_grad():
        for part in model.modules():
            if isinstance(part, Attention):
                part.query.weight.zero_()
                part.query.bias.zero_()
            tables += [part.table] if isinstance(part, Positions) else []
        before = model(batch)
        for table in tables:
            table.add_(torch.randn_like(table))
    assert len(tables) == 3
    for own, other in zip(before, model(batch), strict=True):
        torch.testing.assert_close(own, other)


def test_training_begins_with_the_released_spread() -> None:
    torch.manual_seed(0)
    model = Umt(UmtConfig(feature_dim=300, text_dim=200, positions=500))
    for linear in (model.video.project, model.query.project, model.decoder.layers[1].among.key):
        spread = (2 / sum(linear.weight.shape)) ** 0.5
        assert linear.weight.std().item() == pytest.approx(spread, rel=0.05)
    assert model.decoder.key_positions.table.std().item() == pytest.approx(1 / 16, rel=0.05)
    made = model.config
    assert (made.decoder_layers, made.hidden, made.heads, made.feedforward) == (3, 256, 8, 1024)
    assert not any(each.any() for name, each in model.named_parameters() if name.endswith("bias"))
    assert model.query.project.bias is None


def test_dropout_is_the_release_s() -> None:
    model = Umt(UmtConfig(**SIZES))
    shares = {name: each.p for name, each in model.named_modules() if isinstance(each, torch.nn.Dropout)}
    assert {shares.pop("video.dropout"), shares.pop("query.dropout")} == {0.5, 0.3}
    assert {*shares.values()} == {0.1}
    assert {"video.positions.dropout", "decoder.layers.0.feed_forward.2", "query.attention.dropout"} < shares.keys()
    assert model.query.attention.share == 0.1
    batch = queries((9, 2))
    assert not torch.equal(model(batch).center, model(batch).center)
    model.eval()
    assert torch.equal(model(batch).center, model(batch).center)


def test_what_cannot_be_is_one_line() -> None:
    with pytest.raises(ValueError, match="65 rows are more than the 64 that have a position"):
        network()(queries((65, 2)))
    with pytest.raises(ValueError, match="hidden is 10, not a multiple of 4 heads"):
        UmtConfig(feature_dim=1, text_dim=1, hidden=10, heads=4)


def test_attention_forgets_some_rows_in_training_alone() -> None:
    torch.manual_seed(0)
    layer = network(dropout=0.5).decoder.layers[0].attention
    layer.dropout = torch.nn.Identity()
    rows = torch.randn(1, 8, 16)
    assert torch.equal(layer(rows, rows, rows, None), layer(rows, rows, rows, None))
    layer.train()
    assert not torch.equal(layer(rows, rows, rows, None), layer(rows, rows, rows, None))


def test_losses_are_weighted_as_released() -> None:
    zero, one = torch.zeros(1, 1), torch.ones(1, 1)
    learned = Targets(one, one, one / 2, one, 2)
    found = network().losses(Scores(zero, zero, 3 * one, 5 * one), one > 0, zero, learned)
    assert {name: each.item() for name, each in found.items()} == pytest.approx(
        {"saliency": 3 * log(2), "center": log(2) * 0.25 / 2, "window": 0.1 * 2 / 2, "offset": 4.5 / 2}
    )


def test_only_a_heat_of_1_is_a_centre() -> None:
    zero = torch.zeros(1, 1)
    learned = Targets(torch.full((1, 1), 0.995), zero, zero, zero, 1)
    found = network().losses(Scores(zero, zero, zero, zero), torch.ones(1, 1, dtype=torch.bool), zero, learned)
    assert found["center"].item() == pytest.approx(-log(0.5) * 0.25 * 0.005**4, rel=1e-3)

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from stepline.models.tan import Tan, contrastive_loss, of_length, said_at, sines  # noqa: E402
from stepline.models.tan_config import StepGroundingConfig, TanConfig  # noqa: E402

TINY: dict[str, Any] = {"feature_dim": 6, "text_dim": 5, "width": 16, "heads": 2, "joint_layers": 2, "positions": 24}


def network(**changes: Any) -> Tan:
    torch.manual_seed(0)
    return Tan(TanConfig(**TINY | {"video_layers": 1} | changes)).eval()


def given(rows: int = 8, texts: int = 3, videos: int = 2) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(1)
    return tuple(torch.randn(videos, n, d, generator=generator) for n, d in ((rows, 6), (texts, 5)))  # type: ignore[return-value]


def test_the_sizes_fit_together() -> None:
    with pytest.raises(ValueError, match="^width is 10, not a multiple of 4 heads$"):
        TanConfig(width=10, heads=4)
    assert (TanConfig().positions, StepGroundingConfig().positions) == (1024, 1200)


def test_positions_are_a_part_of_the_table_or_interpolated_between_the_centres_of_rows() -> None:
    table = torch.arange(6.0)[:, None]
    assert of_length(table, 3).flatten().tolist() == [0, 1, 2]
    assert of_length(table, 3, start=2).flatten().tolist() == [2, 3, 4]
    assert of_length(table, 2, source=4).flatten().tolist() == [0.5, 2.5]
    assert of_length(table, 4, source=2).flatten().tolist() == [0, 0.25, 0.75, 1]
    for asked in ({"length": 7}, {"length": 3, "start": 4}, {"length": 2, "source": 7}):
        with pytest.raises(ValueError, match="^the table has 6 positions: 7 are needed$"):
            of_length(table, **asked)  # type: ignore[arg-type]


def test_sines_turn_once_and_go_slower_from_pair_to_pair() -> None:
    table = sines(5, 4)
    angles = torch.arange(5) / 4 * 2 * math.pi
    torch.testing.assert_close(table[:, :2], torch.stack((angles.sin(), angles.cos()), dim=1), atol=2e-6, rtol=0)
    torch.testing.assert_close(table[:, 2], (angles / 100).sin())
    assert not network(video_positions="sine").temporal_pos_embed.requires_grad


def test_a_start_moves_the_positions_and_no_global_generator_is_asked() -> None:
    model, (features, texts) = network(), given()
    state = torch.get_rng_state()
    said = model(features, texts)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.equal(model(features, texts, start=0).joint, said.joint)
    assert not torch.allclose(model(features, texts, start=3).joint, said.joint)
    model.temporal_pos_embed.data = model.temporal_pos_embed.data.roll(3, 0)
    torch.testing.assert_close(model(features, texts, start=3).joint, said.joint)


def test_texts_have_an_order_only_with_positions() -> None:
    features, texts = given()
    for ordered in (False, True):
        model = network(text_positions=ordered)
        forward, back = model(features, texts), model(features, texts.flip(1))
        assert torch.allclose(forward.joint, back.joint.flip(4), atol=1e-5) is not ordered
        torch.testing.assert_close(forward.dual, back.dual.flip(4))


def test_what_is_padded_changes_nothing() -> None:
    model, (features, texts) = network(text_positions=True, alignability=True), given()
    alone = model(features, texts)
    more = (
        torch.nn.functional.pad(features, (0, 0, 0, 4), value=7),
        torch.nn.functional.pad(texts, (0, 0, 0, 2), value=7),
    )
    masks = [(torch.arange(n) >= real).expand(2, -1) for n, real in ((12, 8), (5, 3))]
    padded = model(*more, *masks)
    torch.testing.assert_close(padded.joint[:, :, :8, :, :3], alone.joint)
    torch.testing.assert_close(padded.joint_alignability[:, :, :3], alone.joint_alignability)


def test_a_text_of_another_video_is_as_it_is_beside_its_own() -> None:
    model, (features, texts) = network(), given()
    both, second = model(features, texts), model(features[1:], texts[1:])
    expected = torch.nn.functional.normalize(both.joint_video[0, -1], dim=1)
    expected = expected @ torch.nn.functional.normalize(second.joint_text[0, -1], dim=1).T
    torch.testing.assert_close(both.joint[0, -1, :, 1], expected)


def test_what_is_drawn_has_the_released_spread() -> None:
    torch.manual_seed(0)
    model = Tan(TanConfig(width=128, video_layers=1, joint_layers=4))
    inner = 128**-0.5 * 8**-0.5
    for block in (model.video_temporal_encoder.resblocks[0], model.joint_temporal_encoder.resblocks[3]):
        found = [block.attn.in_proj_weight, block.attn.out_proj.weight, block.mlp.c_fc.weight, block.mlp.c_proj.weight]
        assert [each.std().item() for each in found] == pytest.approx([128**-0.5, inner, 256**-0.5, inner], rel=0.05)
    for table in (model.temporal_pos_embed, model.text_temporal_pos_embed, model.video_pre_proj.weight):
        assert table.std().item() == pytest.approx(0.01, rel=0.05)


def test_the_contrastive_loss_by_hand() -> None:
    """A video of two rows whose first has the first of two texts, the second none; the second text is padding."""
    said = said_at(torch.tensor([[0.0, -1]]), torch.tensor([[0.5, -1]]), 2)
    assert said.tolist() == [[[True, False], [False, False]]]
    padding = torch.tensor([[False, True]])
    cosines = torch.tensor([[0.07, 9], [0.14, 9]])[None, None, :, None]
    of_text = math.log(math.exp(1) + math.exp(2)) - 1
    assert float(contrastive_loss(cosines, said, padding)) == pytest.approx(of_text / 2)
    both = torch.tensor([[False, False]])
    of_row = math.log(math.exp(1) + math.exp(9 / 0.07)) - 1
    assert float(contrastive_loss(cosines, said, both)) == pytest.approx((of_row + of_text) / 2)


def test_a_sentence_is_said_from_its_start_to_before_its_end() -> None:
    found = said_at(torch.tensor([[1.0, 1.2]]), torch.tensor([[3.0, 3.1]]), 5)
    assert found[0].int().tolist() == [[0, 1, 1, 0, 0], [0, 0, 1, 1, 0]]

import pytest

torch = pytest.importorskip("torch")

from stepline.models.step_grounding_config import StepGroundingConfig  # noqa: E402
from stepline.models.tan import JointEncoder, interpolated  # noqa: E402


def test_the_sizes_fit_together() -> None:
    with pytest.raises(ValueError, match="^width is 10, not a multiple of 4 heads$"):
        StepGroundingConfig(width=10, heads=4)


def test_positions_are_interpolated_between_the_centres_of_rows() -> None:
    table = torch.arange(6.0)[:, None]
    assert interpolated(table[:4], 2).flatten().tolist() == [0.5, 2.5]
    assert interpolated(table[:2], 4).flatten().tolist() == [0, 0.25, 0.75, 1]


def test_what_is_drawn_has_the_released_spread() -> None:
    torch.manual_seed(0)
    model = JointEncoder(StepGroundingConfig(width=128, joint_layers=4))
    inner = 128**-0.5 * 8**-0.5
    block = model.joint_temporal_encoder.resblocks[3]
    found = [block.attn.in_proj_weight, block.attn.out_proj.weight, block.mlp.c_fc.weight, block.mlp.c_proj.weight]
    assert [each.std().item() for each in found] == pytest.approx([128**-0.5, inner, 256**-0.5, inner], rel=0.05)
    for table in (model.temporal_pos_embed, model.text_temporal_pos_embed, model.video_pre_proj.weight):
        assert table.std().item() == pytest.approx(0.01, rel=0.05)

"""What ActionFormer learns that the release does not."""

import math

import pytest

torch = pytest.importorskip("torch")

from stepline.models.actionformer import Said, points  # noqa: E402
from stepline.models.actionformer_config import ActionFormerConfig  # noqa: E402
from stepline.models.actionformer_loss import Targets, focal, losses, targets  # noqa: E402
from tests.models.actionformer import SIZES  # noqa: E402

CONFIG = ActionFormerConfig(**SIZES)


def test_a_point_at_the_end_of_a_segment_is_not_in_it() -> None:
    config = ActionFormerConfig(**SIZES, centre_radius=None)
    found = targets(config, points(config, 32), [torch.tensor([[8.0, 12.0]])], [torch.tensor([5])])
    assert found.positive[0].nonzero()[:, 0].tolist() == [9, 10, 11]


def test_points_are_within_a_segment_s_centre_by_strides_of_their_level() -> None:
    found = targets(CONFIG, points(CONFIG, 32), [torch.tensor([[0.0, 24.0]])], [torch.tensor([5])])
    positions = points(CONFIG, 32)[found.positive[0]]
    assert positions[:, [0, 3]].tolist() == [[8, 4], [12, 4], [16, 4]]


def drawn(seed: int = 0) -> tuple[Said, Targets]:
    draw = torch.Generator().manual_seed(seed)
    n = len(points(CONFIG, 32))
    there = torch.arange(n).expand(2, n) % 5 > 0
    said = Said(torch.randn(2, n, 7, generator=draw), torch.rand(2, n, 2, generator=draw), there, [32, 16, 8])
    segments = [torch.tensor([[3.0, 9.0], [2.0, 20.0]]), torch.tensor([[10.0, 14.0]])]
    return said, targets(CONFIG, points(CONFIG, 32), segments, [torch.tensor([1, 4]), torch.tensor([6])])


def test_a_balanced_weight_divides_by_no_less_than_a_hundredth() -> None:
    said, learned = drawn()
    near = said._replace(offsets=torch.where(learned.positive[..., None], learned.offsets * 1.05, said.offsets))
    config = ActionFormerConfig(**SIZES, loss_weight=0)
    for each, small in ((said, False), (near, True)):
        found = losses(config, each, learned, torch.tensor(500.0, dtype=torch.float64))
        weight = float(found.steps) / max(float(found.offsets), 0.01)
        assert (float(found.offsets) < 0.01) == small
        assert float(found.total) == pytest.approx(float(found.steps) + weight * float(found.offsets))


def test_a_score_of_a_half_costs_a_quarter_of_its_entropy_more_of_a_step_that_is_not_shown() -> None:
    assert focal(torch.zeros(()), 1.0).item() == pytest.approx(0.25 * math.log(2) / 4)
    assert focal(torch.zeros(()), 0.0).item() == pytest.approx(0.75 * math.log(2) / 4)


def test_the_normaliser_follows_the_number_of_positive_points_by_a_tenth() -> None:
    said, learned = drawn()
    normaliser = torch.tensor(50.0, dtype=torch.float64)
    losses(CONFIG, said, learned, normaliser)
    assert normaliser.item() == pytest.approx(45 + 0.1 * int((learned.positive & said.there).sum()))


def test_steps_that_a_video_is_not_asked_for_do_not_count() -> None:
    said, learned = drawn()
    asked = torch.zeros(2, 7, dtype=torch.bool)
    asked[0, [1, 4]] = asked[1, [5, 6]] = True
    logits = said.logits.clone().requires_grad_()
    losses(
        CONFIG, said._replace(logits=logits), learned, torch.tensor(9.0, dtype=torch.float64), asked
    ).total.backward()
    counted = logits.grad.abs().sum(dim=1) > 0
    assert torch.equal(counted, asked)

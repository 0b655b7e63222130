from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from stepline.models.matching import soft_ordered  # noqa: E402
from stepline.models.pdvc_config import PdvcConfig  # noqa: E402
from stepline.models.pdvc_loss import (  # noqa: E402
    ACTIVITYNET,
    Predicted,
    as_boxes,
    as_segments,
    counter_loss,
    focal_terms,
    match,
    matching_costs,
    overlaps,
    soft_losses,
)

TRUE = torch.tensor([[0.1, 0.3], [0.5, 0.8]])
MATCHERS = "hungarian", "soda", "soft_soda"
segments = st.tuples(st.floats(0, 1), st.floats(0.01, 1)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def config(**changes: Any) -> PdvcConfig:
    return PdvcConfig(feature_dim=4, vocabulary=5, **changes)


def predicted(segments: list[list[float]], logits: list[float] | None = None, counts: int = 4) -> Predicted:
    """What is said of one video."""
    boxes = as_boxes(torch.tensor([segments])).requires_grad_()
    logits = logits or [0.0] * len(segments)
    return Predicted(torch.tensor([logits], requires_grad=True), boxes, torch.zeros(1, counts + 1, requires_grad=True))


@given(segments)
def test_boxes_are_segments_and_back(segment: tuple[float, float]) -> None:
    given = torch.tensor([segment], dtype=torch.float64)
    torch.testing.assert_close(as_segments(as_boxes(given)), given)
    assert as_boxes(torch.tensor([0.2, 0.6])).tolist() == pytest.approx([0.4, 0.4])


@given(segments, segments)
def test_overlaps_are_symmetric_and_bounded(first: tuple[float, float], second: tuple[float, float]) -> None:
    pair = torch.tensor([first, second], dtype=torch.float64)
    iou, generalised = overlaps(pair[0], pair[1])
    torch.testing.assert_close((iou, generalised), overlaps(pair[1], pair[0]))
    assert 0 <= iou <= 1
    assert -1 <= generalised <= iou + 1e-9


def test_focal_losses_and_overlaps_by_hand() -> None:
    """Of scores 1/2 and 3/4; and of (0, 2) with (1, 4), 1 of 4 s, and with (3, 4), whose hull has a gap of 1 of 4 s."""
    of_segment, of_other = focal_terms(torch.tensor([0.0, np.log(3)], dtype=torch.float64), 0.25, 2.0)
    assert of_segment.tolist() == pytest.approx([np.log(2) / 16, -np.log(0.75) / 64])
    assert of_other.tolist() == pytest.approx([3 * np.log(2) / 16, 27 * np.log(4) / 64])
    iou, generalised = overlaps(torch.tensor([0.0, 2.0]), torch.tensor([[1.0, 4.0], [3.0, 4.0]]))
    assert iou.tolist() == pytest.approx([1 / 4, 0], abs=1e-5)
    assert generalised.tolist() == pytest.approx([1 / 4, -1 / 4], abs=1e-5)


def test_costs_are_those_of_the_paper_or_of_the_release() -> None:
    guess = predicted([[0.1, 0.3], [0.6, 0.8], [0.0, 0.1]], [2.0, -1.0, 0.0])
    logits, boxes = guess.logits[0], guess.boxes[0]
    iou, generalised = overlaps(TRUE[:, None], as_segments(boxes))
    torch.testing.assert_close(matching_costs(config(cost="iou"), logits, boxes, TRUE), -iou)
    of_segment, of_other = focal_terms(logits, 0.25, 2.0)
    expected = 2 * (of_segment - of_other)[None] - 4 * generalised
    torch.testing.assert_close(matching_costs(config(), logits, boxes, TRUE), expected)


def test_an_ordered_matcher_keeps_the_order_in_time_of_whole_boxes_and_hungarian_does_not() -> None:
    """Figure 4, example 1, in tenths, with the queries out of order: the best for g2 alone begins before g1's."""
    true = torch.tensor([[0.2, 0.5], [0.7, 0.9]])
    guess = predicted([[0.4, 0.8], [0.1, 0.9], [0.1, 0.4]])
    found = {matcher: match(config(matcher=matcher, cost="iou"), guess, [true]) for matcher in MATCHERS}
    assert found["hungarian"].query.tolist() == [2, 1]
    assert found["soda"].query.tolist() == found["soft_soda"].query.tolist() == [2, 1]
    # The same with p1 = [0, 0.9]: now it is before p2 whatever the key, and g2 must take p3.
    guess = predicted([[0.4, 0.8], [0.0, 0.9], [0.1, 0.4]])
    found = {matcher: match(config(matcher=matcher, cost="iou"), guess, [true]) for matcher in MATCHERS}
    assert found["hungarian"].query.tolist() == [2, 1]
    assert found["soda"].query.tolist() == found["soft_soda"].query.tolist() == [2, 0]


def test_soft_soda_s_losses_are_the_smooth_tables_ends_per_segment_of_each_layer() -> None:
    """Two layers and two videos of another number of segments, at once as each alone; other matchers have none."""
    guesses = [predicted([[0.4, 0.8], [0.05, 0.35], [0.7, 0.9]]), predicted([[0.3, 0.8], [0.2, 0.3], [0.6, 0.9]])]
    layer = Predicted(*(torch.cat(parts) for parts in zip(*guesses, strict=True)))
    order = torch.tensor([1, 0, 2])
    segments = [TRUE, TRUE[1:]]
    for cost in ("iou", "pdvc"):
        soft = config(matcher="soft_soda", cost=cost, gamma=0.1)
        matched = match(soft, layer, segments)
        found = soft_losses(soft, [matched, matched])
        expected = 0
        for logits, boxes, true in zip(layer.logits, layer.boxes, segments, strict=True):
            costs = matching_costs(soft, logits, boxes, true)[:, order]
            expected = expected + soft_ordered(costs[None], gamma=0.1)[0]
        torch.testing.assert_close(found, (expected / 3).expand(2))
        found.sum().backward(retain_graph=True)
        for each in guesses:
            assert each.boxes.grad is not None
            assert each.boxes.grad.abs().sum() > 0
    assert not match(config(matcher="soda"), layer, segments).tables
    assert not match(config(), layer, segments).tables


def counted(counts: torch.Tensor, n: int, **changes: Any) -> float:
    return float(counter_loss(config(**changes), counts[None], torch.tensor([n])))


def test_the_counter_s_loss_by_hand() -> None:
    """Logits of 0 cost log 2 each; those 1 and 2 beside the true number by 1 - exp(-1/8) and 1 - exp(-1/2)."""
    near, far, even = 1 - np.exp(-1 / 8), 1 - np.exp(-1 / 2), {"count_weights": "none"}
    assert counted(torch.zeros(3), 1, **even) == pytest.approx(np.log(2) * (1 + 2 * near) / 3)
    assert counted(torch.zeros(3), 2, **even) == pytest.approx(np.log(2) * (1 + near + far) / 3)
    assert counted(torch.zeros(3), 9, **even) == counted(torch.zeros(3), 2, **even)
    assert counted(torch.tensor([-9.0, 9, -9]), 1, **even) < 1e-3
    both = torch.tensor([[0.0, 1, 2], [3, 0, 1]]), torch.tensor([1, 2])
    alone = [counted(logits, int(n)) for logits, n in zip(*both, strict=True)]
    assert float(counter_loss(config(), *both)) == pytest.approx(np.mean(alone))


def test_as_released_a_number_counts_less_the_more_videos_of_activitynet_have_it() -> None:
    """Of 10,009 videos 1,936 have two segments and 4,125 three; no video has 28 or more."""
    assert sum(ACTIVITYNET) == 10_009
    logits, fewer = torch.full((31,), -40.0), torch.full((21,), -40.0)
    assert counted(fewer, 3) == pytest.approx((1 - 0.412129084) * counted(fewer, 3, count_weights="none"))
    for number, share in ((0, 0.0), (2, 0.193425917), (3, 0.412129084), (17, 1.99820162e-4), (30, 0.0)):
        assert counted(logits, number) == pytest.approx((1 - share) * counted(logits, number, count_weights="none"))


@given(st.permutations(range(4)), st.sampled_from(MATCHERS))
def test_the_order_of_queries_is_without_effect(order: list[int], matcher: Any) -> None:
    places = [[0.6, 0.9], [0.15, 0.3], [0.35, 0.5], [0.05, 0.2]]
    guess = predicted(places, [1.0, 0.5, -0.5, 0.0])
    moved = Predicted(guess.logits[:, order], guess.boxes[:, order], guess.counts)
    first, second = (match(config(matcher=matcher), each, [TRUE]) for each in (guess, moved))
    assert torch.tensor(order)[second.query].tolist() == first.query.tolist()
    torch.testing.assert_close(first.tables, second.tables)

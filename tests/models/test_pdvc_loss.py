from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from hypothesis import given  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from stepline.models.matching import soft_ordered  # noqa: E402
from stepline.models.pdvc import PdvcConfig  # noqa: E402
from stepline.models.pdvc_loss import (  # noqa: E402
    Predicted,
    as_boxes,
    as_segments,
    counter_loss,
    focal_terms,
    match,
    matching_costs,
    overlaps,
    segment_losses,
)

TRUE = torch.tensor([[0.1, 0.3], [0.5, 0.8]])
MATCHERS = "hungarian", "soda", "soft_soda"
segments = st.tuples(st.floats(0, 1), st.floats(0.01, 1)).map(lambda pair: (pair[0], pair[0] + pair[1]))


def config(**changes: Any) -> PdvcConfig:
    return PdvcConfig(feature_dim=4, vocabulary=5, **changes)


def predicted(segments: list[list[float]], logits: list[float] | None = None, counts: int = 4) -> Predicted:
    boxes = as_boxes(torch.tensor(segments)).requires_grad_()
    logits = logits or [0.0] * len(segments)
    return Predicted(torch.tensor(logits, requires_grad=True), boxes, torch.zeros(counts + 1, requires_grad=True))


@given(segments)
def test_boxes_are_segments_and_back(segment: tuple[float, float]) -> None:
    given = torch.tensor([segment], dtype=torch.float64)
    torch.testing.assert_close(as_segments(as_boxes(given)), given)
    assert as_boxes(torch.tensor([0.2, 0.6])).tolist() == pytest.approx([0.4, 0.4])


def test_overlaps_by_hand() -> None:
    """Of [0, 4]: half in common with [2, 6], touching [4, 8], apart from [6, 8], and inside [0, 8]."""
    iou, generalised = overlaps(torch.tensor([0.0, 4.0]), torch.tensor([[2.0, 6], [4, 8], [6, 8], [0, 8], [0, 4]]))
    np.testing.assert_allclose(iou, [1 / 3, 0, 0, 1 / 2, 1], atol=1e-4)
    np.testing.assert_allclose(generalised, [1 / 3, 0, -2 / 8, 1 / 2, 1], atol=1e-4)


@given(segments, segments)
def test_overlaps_are_symmetric_and_bounded(first: tuple[float, float], second: tuple[float, float]) -> None:
    pair = torch.tensor([first, second], dtype=torch.float64)
    iou, generalised = overlaps(pair[0], pair[1])
    torch.testing.assert_close((iou, generalised), overlaps(pair[1], pair[0]))
    assert 0 <= iou <= 1
    assert -1 <= generalised <= iou + 1e-9


def test_the_focal_loss_is_cross_entropy_times_a_power_of_the_error() -> None:
    probability = torch.tensor([0.01, 0.5, 0.9])
    of_segment, of_other = focal_terms(probability.logit(), 0.25, 2.0)
    torch.testing.assert_close(of_segment, -0.25 * (1 - probability) ** 2 * probability.log())
    torch.testing.assert_close(of_other, -0.75 * probability**2 * (1 - probability).log())


def test_costs_are_those_of_the_paper_or_of_the_release() -> None:
    guess = predicted([[0.1, 0.3], [0.6, 0.8], [0.0, 0.1]], [2.0, -1.0, 0.0])
    iou, generalised = overlaps(TRUE[:, None], as_segments(guess.boxes))
    torch.testing.assert_close(matching_costs(config(cost="iou"), guess, TRUE), -iou)
    of_segment, of_other = focal_terms(guess.logits, 0.25, 2.0)
    expected = 2 * (of_segment - of_other)[None] - 4 * generalised
    torch.testing.assert_close(matching_costs(config(), guess, TRUE), expected)


def test_an_ordered_matcher_keeps_the_order_in_time_of_whole_boxes_and_hungarian_does_not() -> None:
    """Figure 4, example 1, in tenths, with the queries out of order: the best for g2 alone begins before g1's."""
    true = torch.tensor([[0.2, 0.5], [0.7, 0.9]])
    guess = predicted([[0.4, 0.8], [0.1, 0.9], [0.1, 0.4]])
    found = {matcher: match(config(matcher=matcher, cost="iou"), guess, true) for matcher in MATCHERS}
    assert found["hungarian"][0].tolist() == [2, 1]
    assert found["soda"][0].tolist() == found["soft_soda"][0].tolist() == [2, 1]
    # The same with p1 = [0, 0.9]: now it is before p2 whatever the key, and g2 must take p3.
    guess = predicted([[0.4, 0.8], [0.0, 0.9], [0.1, 0.4]])
    found = {matcher: match(config(matcher=matcher, cost="iou"), guess, true) for matcher in MATCHERS}
    assert found["hungarian"][0].tolist() == [2, 1]
    assert found["soda"][0].tolist() == found["soft_soda"][0].tolist() == [2, 0]


def test_only_soft_soda_has_an_end_and_it_is_the_smooth_table_s_per_segment() -> None:
    guess = predicted([[0.4, 0.8], [0.05, 0.35], [0.7, 0.9]])
    order = torch.tensor([1, 0, 2])
    for cost in ("iou", "pdvc"):
        soft = config(matcher="soft_soda", cost=cost, gamma=0.1)
        end = match(soft, guess, TRUE)[1]
        costs = matching_costs(soft, guess, TRUE)[:, order]
        torch.testing.assert_close(end, soft_ordered(costs[None], gamma=0.1)[0] / 2)
        end.backward()
        assert guess.boxes.grad is not None
        assert guess.boxes.grad.abs().sum() > 0
    assert match(config(matcher="soda"), guess, TRUE)[1] == 0
    assert match(config(), guess, TRUE)[1] == 0


def test_the_counter_s_loss_by_hand() -> None:
    """Logits of 0 cost log 2 each; those 1 and 2 beside the true number by 1 - exp(-1/8) and 1 - exp(-1/2)."""
    near, far = 1 - np.exp(-1 / 8), 1 - np.exp(-1 / 2)
    assert float(counter_loss(torch.zeros(3), 1)) == pytest.approx(np.log(2) * (1 + 2 * near) / 3)
    assert float(counter_loss(torch.zeros(3), 2)) == pytest.approx(np.log(2) * (1 + near + far) / 3)
    assert counter_loss(torch.zeros(3), 9) == counter_loss(torch.zeros(3), 2)
    assert counter_loss(torch.tensor([-9.0, 9, -9]), 1) < 1e-3


def test_the_losses_of_a_layer_by_hand() -> None:
    guess = predicted([[0.1, 0.3], [0.6, 0.8], [0.0, 0.1]], [2.0, -1.0, 0.0])
    chosen = torch.tensor([0, 1])
    losses = segment_losses(config(), guess, TRUE, chosen, torch.tensor(0.0))
    of_segment, of_other = focal_terms(guess.logits, 0.25, 2.0)
    assert set(losses) == {"score", "giou", "count"}
    torch.testing.assert_close(losses["score"], 2 * (of_segment[0] + of_segment[1] + of_other[2]) / 2)
    assert losses["giou"].item() == pytest.approx(4 * (0 + (1 - 2 / 3)) / 2, abs=1e-3)
    torch.testing.assert_close(losses["count"], 0.5 * counter_loss(guess.counts, 2))
    soft = segment_losses(config(matcher="soft_soda", soft_weight=3.0), guess, TRUE, chosen, torch.tensor(-2.0))
    assert soft["soft"] == -6
    assert soft["score"] == losses["score"]


@given(st.permutations(range(4)), st.sampled_from(MATCHERS))
def test_the_order_of_queries_is_without_effect(order: list[int], matcher: Any) -> None:
    places = [[0.6, 0.9], [0.15, 0.3], [0.35, 0.5], [0.05, 0.2]]
    guess = predicted(places, [1.0, 0.5, -0.5, 0.0])
    moved = Predicted(guess.logits[order], guess.boxes[order], guess.counts)
    chosen, end = match(config(matcher=matcher), guess, TRUE)
    again, same = match(config(matcher=matcher), moved, TRUE)
    assert torch.tensor(order)[again].tolist() == chosen.tolist()
    torch.testing.assert_close(end, same)

"""Growing of steps: the rules by hand."""

import pytest

torch = pytest.importorskip("torch")

from stepline.models.hirest_joint_segments import between, grow, kept  # noqa: E402
from tests.models.joint import alone, network, videos  # noqa: E402


def step(scores: list[float], inside: list[int], threshold: float = 0.5) -> tuple[int, int, int, bool]:
    logits = torch.tensor([scores]).log()
    last = torch.tensor([len(scores) - 1])
    peak, left, right, taken = (each.item() for each in grow(logits, torch.tensor([inside]) > 0, last, threshold))
    return peak, left, right, taken


def test_a_step_is_a_frame_wider_on_each_side_than_what_is_above_the_threshold() -> None:
    scores, everywhere = [1, 1, 3, 6, 8, 5, 4, 1], [0, 1, 1, 1, 1, 1, 1, 0]
    assert step(scores, everywhere) == (4, 2, 6, True)
    assert step(scores, everywhere, 0.8) == (4, 3, 5, True)
    assert step(scores, everywhere, 0.2) == (4, 1, 7, True)
    assert step([1.0, 8, 8, 8, 1], [0, 1, 1, 1, 0]) == (1, 0, 4, False)
    assert step([1.0, 1, 1, 5, 8], [0, 0, 0, 1, 1]) == (4, 2, 4, True)


def test_a_score_at_the_threshold_is_not_above_it() -> None:
    assert step([1.0, 1, 4, 8, 4, 1], [1] * 6) == (3, 2, 4, True)


def test_where_nothing_is_left_no_step_is_taken() -> None:
    assert step([1.0, 2, 3], [0, 0, 0]) == (0, 0, 2, False)


def test_frames_of_no_moment_have_no_score() -> None:
    assert step([1.0, 1, 99, 8, 7, 1, 1], [0, 0, 0, 1, 1, 1, 1]) == (3, 2, 5, True)


@pytest.mark.parametrize(
    ("ends", "moment", "boundaries"),
    [
        ([10, 14, 15, 21], (10, 40), [10, 15, 21]),
        ([9, 10, 15], (10, 40), [9, 15]),
        ([10, 20, 30, 41], (10, 40), [10, 20, 30, 40]),
        ([10, 20, 36, 41], (10, 40), [10, 20, 36]),
        ([10], (10, 40), [10]),
        ([10], (10, 10), [10]),
        ([20, 30, 40], (40, 10), [10]),
    ],
    ids=["gap", "before the moment", "after the moment", "gap to the end", "none", "one frame", "reversed"],
)
def test_boundaries_that_stay(ends: list[int], moment: tuple[int, int], boundaries: list[int]) -> None:
    marked = torch.zeros(1, 50, dtype=torch.bool)
    marked[0, ends] = True
    assert kept(marked, torch.tensor([moment]), 5) == [boundaries]


def test_videos_without_more_steps_leave_the_rest_as_they_are() -> None:
    model, batch = network(2, padding="masked"), videos(40, 33)
    moments = torch.tensor([[4, 38], [26, 32]])
    steps = [each.video.tolist() for each in model.growth(batch, moments)]
    assert [0] in steps
    apart = [model.segments(alone(batch, number), moments[number : number + 1])[0] for number in (0, 1)]
    assert model.segments(batch, moments) == apart
    *_, last = model.growth(batch, moments)
    found = {gap: network(2, padding="masked", gap=gap).segments(batch, moments) for gap in (1, 5)}
    assert found == {gap: kept(last.ends, moments, gap) for gap in (1, 5)}
    assert found[1] != found[5] == apart
    for most in (1, 2):
        assert len([*network(2, padding="masked", iterations=most).growth(batch, moments)]) == most < len(steps)


def test_between_is_of_both_ends() -> None:
    assert between(torch.tensor([1, 3]), torch.tensor([2, 1]), 4).tolist() == [[False, True, True, False], [False] * 4]

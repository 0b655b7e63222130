"""Growing of steps: the rules by hand, and all of it against a straight-line procedure."""

from typing import Any

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
        ([40], (40, 10), [10]),
    ],
    ids=["gap", "before the moment", "after the moment", "gap to the end", "none", "one frame", "reversed"],
)
def test_boundaries_that_stay(ends: list[int], moment: tuple[int, int], boundaries: list[int]) -> None:
    marked = torch.zeros(1, 50, dtype=torch.bool)
    marked[0, ends] = True
    assert kept(marked, torch.tensor([moment]), 5) == [boundaries]


def straight(model: Any, batch: Any, moments: list[list[int]]) -> list[list[int]]:
    """The released procedure, a frame at a time."""
    config, frames = model.config, batch.features.shape[1]
    inside, ends = torch.zeros(2, len(moments), frames, dtype=torch.bool)
    spans = [[(start, start)] for start, _ in moments]
    for number, (start, end) in enumerate(moments):
        inside[number, start : end + 1] = ends[number, start] = True
    for _ in range(config.iterations):
        with torch.no_grad():
            logits = model.segment_logits(batch, inside, ends)
        for number, of_video in enumerate(spans):
            left, right = straight_step(logits[number], inside[number], config.threshold)
            if left > 0:
                inside[number, left : right + 1] = False
                ends[number, [left, right]] = True
                of_video.append((left, right))
    return [straight_boundaries(of, end, config.gap) for of, (_, end) in zip(spans, moments, strict=True)]


def straight_step(logits: Any, inside: Any, threshold: float) -> tuple[int, int]:
    scores = torch.where(inside, logits, -torch.finfo(logits.dtype).max).softmax(dim=0).tolist()
    best = max(scores)
    left = right = scores.index(best)
    while left > 0 and scores[left] / best > threshold:
        left -= 1
    while right < len(scores) - 1 and scores[right] / best > threshold:
        right += 1
    return left, right


def straight_boundaries(spans: list[tuple[int, int]], end: int, gap: int) -> list[int]:
    frames = [frame for span in sorted([*spans, (end, end)], key=lambda span: span[0]) for frame in span]
    while frames[-1] > end:
        frames.pop()
    frames = sorted({*frames})
    stay = frames[:1]
    for frame in frames[1:-1]:
        if frame - stay[-1] >= gap:
            stay.append(frame)
    return stay


@pytest.mark.parametrize("threshold", [0.2, 0.5, 0.8])
def test_segmentation_is_the_straight_line_procedure_s(threshold: float, float64: None) -> None:
    batch = videos(40, 33, 60, 28)
    batch = type(batch)(*(each.double() if each.is_floating_point() else each for each in batch))
    moments = [[4, 38], [0, 32], [30, 20], [1, 20]]
    different = set()
    for seed in range(6):
        model = network(seed, threshold=threshold, gap=3, iterations=9)
        found = model.segments(batch, torch.tensor(moments))
        assert found == straight(model, batch, moments)
        different |= {tuple(each) for each in found}
    assert len(different) > 6


def test_videos_without_more_steps_leave_the_rest_as_they_are() -> None:
    model, batch = network(2, padding="masked"), videos(40, 33)
    moments = torch.tensor([[4, 38], [26, 32]])
    steps = [each.video.tolist() for each in model.growth(batch, moments)]
    assert [0] in steps
    apart = [model.segments(alone(batch, number), moments[number : number + 1])[0] for number in (0, 1)]
    assert model.segments(batch, moments) == apart


def test_between_is_of_both_ends() -> None:
    assert between(torch.tensor([1, 3]), torch.tensor([2, 1]), 4).tolist() == [[False, True, True, False], [False] * 4]

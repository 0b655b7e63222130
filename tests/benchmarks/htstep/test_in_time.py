"""The truth of a video over time and what is predicted there."""

from typing import Any

import pytest

from stepline.benchmarks.htstep.kinds import Found
from tests.benchmarks.htstep.conftest import inputs
from tests.benchmarks.htstep.synthetic import SILENT, TASKS, headline, videos

pytestmark = pytest.mark.usefixtures("releases")
VIDEO = next(each for each in videos() if each.split == "val_seen" and len({step for *_, step, _ in each.segments}) > 1)
TRUTH = [(start_s, end_s, headline(step)) for start_s, end_s, step, _ in VIDEO.segments]


def judged(**said: Any) -> tuple[list[tuple[float, float, str, str]], str]:
    """Return start, end, label and verdict of what is predicted, without misses, and the rule."""
    of = inputs("uniform")
    made = Found(seed=0, split="val_seen", video=VIDEO.video, **({"steps": (), "segments": (), "scores": ()} | said))
    found = of.benchmark.in_time(of, VIDEO.video, made)
    assert found is not None
    assert [(each.start_s, each.end_s, each.label) for each in found.truth] == TRUTH
    spans = [(each.start_s, each.end_s, each.label, each.verdict) for each in found.predicted]
    assert len(TRUTH) == sum(each[3] in ("hit", "wrong label", "miss") for each in spans)
    return [each for each in spans if each[3] != "miss"], found.rule


def test_of_each_step_the_best_segment_is_judged() -> None:
    start_s, end_s, step, _ = VIDEO.segments[0]
    other = next(each for each in VIDEO.steps if each != step)
    far, near = (900.0, 910.0), (start_s, end_s)
    made, rule = judged(steps=(step, step, other), segments=(near, far, far), scores=(3.0, 2.0, 1.0))
    assert made == [(*near, headline(step), "hit"), (*far, headline(other), "false positive")]
    assert rule.startswith("for each step, the segment with the highest score; ")
    assert judged(steps=(other,), segments=(near,), scores=(1.0,))[0] == [(*near, headline(other), "wrong label")]
    assert judged(steps=(999,), segments=(far,), scores=(1.0,))[0] == [(*far, "step 999", "false positive")]


def test_without_segments_the_second_of_each_step_is_judged() -> None:
    start_s, _, step, _ = VIDEO.segments[0]
    other = next(each for each in VIDEO.steps if each != step)
    made, rule = judged(article=(other, step), times_s=(900.0, start_s + 1))
    assert made == [
        (start_s + 1, start_s + 2, headline(step), "hit"),
        (900.0, 901.0, headline(other), "false positive"),
    ]
    assert rule.startswith("for each step, the second in which it is most likely; ")


def test_without_a_prediction_there_is_the_truth_and_without_truth_nothing() -> None:
    of = inputs("uniform")
    for video, split in ((SILENT, "val_seen"), ("train-0-0", "train")):
        found = of.benchmark.in_time(of, video, None)
        segments = next(each.segments for each in videos() if each.video == video)
        assert found is not None, split
        assert [each.label for each in found.truth] == [headline(step) for *_, step, _ in segments]
        assert {each.verdict for each in found.predicted} == {"miss"}
    few = inputs("uniform", entries={"uniform": {"splits": ["test_seen"]}})
    assert few.benchmark.in_time(few, SILENT, None) == of.benchmark.in_time(of, SILENT, None)
    assert of.benchmark.in_time(of, "test_seen-0-0", None) is None
    assert of.benchmark.in_time(of, "ct-1001-0", None) is None
    of = inputs("uniform", "crosstask")
    found = of.benchmark.in_time(of, "ct-1001-0", None)
    assert found is not None
    assert [each.label for each in found.truth] == [*TASKS["1001"][1]]
    assert of.benchmark.in_time(of, SILENT, None) is None

import pytest

from stepline.benchmark.timed import HIT, WRONG_LABEL
from stepline.benchmarks.segments.benchmark import Segments
from stepline.benchmarks.segments.recognition import Recognised
from tests.benchmarks.segments.conftest import inputs


def test_a_video_has_its_true_steps_and_each_recognised_one_a_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Segments, "texts", lambda *_: {"wash": "cook", "cut": "cut it"})
    of = inputs("most-frequent")
    found = of.benchmark.in_time(of, "e", Recognised(seed=0, split="test", video="e", steps=("wash", "wash", "cut")))
    assert found is not None
    assert [(each.start_s, each.end_s, each.label) for each in found.truth] == [
        (0, 2, "cook"), (2, 4, "cook"), (4, 6, "cut it")
    ]  # fmt: skip
    assert [(each.label, each.verdict) for each in found.predicted] == [
        ("cook", HIT), ("cook", WRONG_LABEL), ("cut it", HIT)
    ]  # fmt: skip


def test_any_split_has_a_truth_and_a_video_without_labels_has_nothing() -> None:
    of = inputs("most-frequent")
    found = of.benchmark.in_time(of, "a", None)
    assert found is not None
    assert ([each.label for each in found.truth], list(found.predicted)) == (["wash", "cut"], [])
    assert of.benchmark.in_time(of, "x", None) is None

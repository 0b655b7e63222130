from typing import Any

import pytest

from stepline.benchmarks.segments.benchmark import Segments
from stepline.benchmarks.segments.recognition import Recognised
from stepline.errors import ConfigError
from tests.benchmarks.segments.conftest import inputs, segment

LISTED = [
    segment("a", video="v", part="easy"),
    segment("a", 2, video="v"),
    segment("a", video="w", part="easy", procedure="another"),
    segment("b", video="not predicted", part="easy"),
    segment("b", video="nor this"),
]


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(Segments, "segments", lambda *asked: LISTED if asked[-1] == "test" else [])
    of = inputs("most-frequent")
    made = [Recognised(seed=0, split="test", video=video, steps=steps) for video, steps in PREDICTED.items()]
    return of.benchmark.values(of, made)


PREDICTED = {"v": ("a", "b"), "w": ("a",)}


def test_each_segment_is_right_or_wrong(values: Any) -> None:
    assert values["accuracy"].values.tolist() == [100, 0, 100]
    assert values["accuracy"].videos == ["v", "v", "w"]
    assert values["accuracy"].counts == {"n_listed": 4, "n_samples": 3}


def test_each_step_counts_the_same(values: Any) -> None:
    """Half of a, and all of the other procedure's a."""
    found = values["by_step"]
    assert found.corpus == 75
    assert found.values.tolist() == [100, 0, 100]


def test_a_part_has_its_own_segments_alone(values: Any) -> None:
    assert values.keys() == {"accuracy", "by_step", "easy"}
    assert values["easy"].values.tolist() == [100, 100]
    assert values["easy"].videos == ["v", "w"]
    assert values["easy"].counts == {"n_listed": 3, "n_samples": 2}


def test_predictions_for_other_segments_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Segments, "segments", lambda *asked: LISTED if asked[-1] == "test" else [])
    of = inputs("most-frequent")
    with pytest.raises(
        ConfigError, match=r"^v has 2 segments and 1 predicted steps: .* raise `reader_revision` of Segm"
    ):
        of.benchmark.values(of, [Recognised(seed=0, split="test", video="v", steps=("a",))])

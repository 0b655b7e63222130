import json
from collections.abc import Callable
from typing import Any

import pytest

from stepline import paths
from stepline.benchmarks.spacewalk.items import read_items
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION
from stepline.errors import StoreError
from tests.benchmarks.spacewalk.conftest import MadeUp

DAMAGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "nothing": lambda samples: {},
    "a list": lambda samples: [],
    "no samples": lambda samples: {"d": 1, "e": 2},
    "a recording less": lambda samples: {"d": samples["d"]},
    "another split's recording": lambda samples: samples | {"a": samples["d"]},
    "an unknown recording": lambda samples: {"d": samples["d"], "x": samples["e"]},
    "a sample without a label": lambda samples: samples | {"d": [{"id": 0, "frame_index": 3, "query_frame_index": 3}]},
    "a label that does not exist": lambda samples: samples | {"d": [samples["d"][0] | {"label": 999}]},
    "a label below 0": lambda samples: samples | {"d": [samples["d"][0] | {"label": -1}]},
}


@pytest.mark.parametrize("task", [STEP_RECOGNITION, RETRIEVAL])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_one_line(task: str, damage: str, made_up: MadeUp) -> None:
    path = paths.samples(made_up.release.study, made_up.release.name, task, "test")
    samples = json.loads(path.read_text())
    assert read_items(made_up.release, task, "test").keys() == samples.keys() == {"d", "e"}
    path.write_text(json.dumps(DAMAGES[damage](samples)))
    with pytest.raises(StoreError, match=f"^{path} does not contain the samples of .*: remove it and run"):
        read_items(made_up.release, task, "test")


def test_times_are_frames_over_the_rate(made_up: MadeUp) -> None:
    fps = made_up.release.fps
    for items in read_items(made_up.release, STEP_RECOGNITION, "test").values():
        assert all(item.times_s == (item.frame / fps,) for item in items)
    path = paths.samples(made_up.release.study, made_up.release.name, RETRIEVAL, "test")
    for video, items in read_items(made_up.release, RETRIEVAL, "test").items():
        for item, sample in zip(items, json.loads(path.read_text())[video], strict=True):
            frames = [sample["query_frame_index"], *sample["candidate_frame_indices"]]
            assert item.times_s == tuple(frame / fps for frame in frames)

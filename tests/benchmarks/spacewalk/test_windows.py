import pytest

from stepline.benchmarks.spacewalk.items import read_items
from stepline.benchmarks.spacewalk.windows import clips
from stepline.datasets.schema import Split
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION, Study
from tests.benchmarks.spacewalk.conftest import MadeUp


def test_clips_are_the_windows_of_all_samples_at_all_lengths_and_the_animations(
    made_up: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Study, "load", lambda study, name: made_up.release)
    lengths_s = {STEP_RECOGNITION: [4.0, 600.0], RETRIEVAL: [2.0]}
    found = clips(made_up.study, ["demo"], lengths_s, ["d", "a"])
    assert {*found} == {"a", "d"}
    splits: dict[str, Split] = {"a": "train", "d": "test"}
    for video, split in splits.items():
        recording = made_up.release.recordings[video]
        wanted = {step.animation_s for step in recording.steps if step.animation_s}
        for task, lengths in lengths_s.items():
            for item in read_items(made_up.release, task, split)[video]:
                for t_s in item.times_s:
                    wanted |= {(max(0.0, t_s - w / 2), min(recording.duration_s, t_s + w / 2)) for w in lengths}
        assert found[video] == sorted(wanted)

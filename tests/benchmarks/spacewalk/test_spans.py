"""Which spans of a study's videos are read, and that its samples see nothing else."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepline import paths
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.items import read_items
from stepline.benchmarks.spacewalk.samples import write_samples
from stepline.benchmarks.spacewalk.text import window
from stepline.config import validate
from stepline.datasets.schema import Recording, Segment, Step
from stepline.errors import ReleaseError
from stepline.fetch import fetch_release


def plan(spans: str = "annotated", **study: Any) -> Spacewalk:
    changes = {"video_encoders": ["histogram"], **study}
    return Spacewalk.of(validate({"media": {"spans": spans}, "spacewalk": changes}), "spacewalk")


@pytest.fixture
def fetched(real_data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(real_data))
    for release in ("v0", "v1", "v2"):
        fetch_release(plan().released, release)


@pytest.mark.slow
@pytest.mark.usefixtures("fetched")
def test_every_window_and_animation_lies_within_a_span() -> None:
    study = plan()
    spans = study.pipeline.demand.spans()
    assert sum(map(len, spans.values())) == 63
    for name in study.releases:
        release = study.released.load(name)
        for task in study.released.tasks[name]:
            longest_s = max(study.options["contexts_s"][task])
            for split in study.released.splits(name, task):
                write_samples(study.released, release, task, split, paths.samples("spacewalk", name, task, split))
                for video, items in read_items(release, task, split).items():
                    recording = release.recordings[video]
                    seen = [window(t, longest_s, recording.duration_s) for item in items for t in item.times_s]
                    seen += [step.animation_s for step in recording.steps if step.animation_s]
                    for start_s, end_s in set(seen):
                        assert any(of[0] <= start_s and end_s <= of[1] for of in spans[video]), (name, video, start_s)


@pytest.mark.usefixtures("fetched")
def test_a_longer_window_reads_more_and_is_looked_for_again() -> None:
    def hours(study: Spacewalk) -> float:
        spans = study.pipeline.demand.spans().values()
        return sum(end_s - start_s for each in spans for start_s, end_s in each) / 3600

    short = plan(contexts_s={"step_recognition": [60], "intra-video_retrieval": [60]})
    assert round(hours(plan()), 1) == 100.3 > hours(short)
    assert (
        short.pipeline.videos.params("000")
        != plan().pipeline.videos.params("000")
        != plan("all").pipeline.videos.params("000")
    )


@pytest.mark.parametrize("reads", [{}, {"transcripts": "asr", "video_encoders": []}])
def test_labelled_parts_are_read_with_half_a_window_and_animations_with_a_margin(
    reads: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = (0, 20, -1), (20, 40, 0), (100, 110, 1), (110, 900, -1)
    segments = tuple(Segment(start_s=a, end_s=b, start_frame=0, end_frame=1, label=label) for a, b, label in parts)
    steps = tuple(Step(caption="", transcript="", animation_s=each) for each in (None, (0.5, 3.0), (200.0, 210.0)))
    recording = Recording(video="a", split="test", duration_s=900, segments=segments, steps=steps)
    made = SimpleNamespace(recordings={"a": recording})
    windows = {"step_recognition": [30, 60], "intra-video_retrieval": [10]}
    study = plan(releases=["v2"], tables=["table2"], contexts_s=windows, **reads)
    monkeypatch.setattr(type(study.released), "load", lambda self, name: made)
    assert study.pipeline.demand.spans() == {"a": [[0.0, 141.0], [199.0, 211.0]]}


def test_a_release_that_is_not_there_is_one_line() -> None:
    with pytest.raises(ReleaseError, match="holds no release: run `stepline fetch spacewalk/v0`$"):
        plan().pipeline.videos.spans()


def test_the_videos_wait_for_the_releases_only_where_these_say_what_is_read() -> None:
    assert plan("all").pipeline.videos.inputs == []
    assert len({plan(releases=each).pipeline.videos.params("000") for each in (["v2"], ["v1", "v2"])}) == 2
    assert plan(releases=["v1", "v2"]).pipeline.videos.inputs == [
        Path(f"datasets/spacewalk/{r}/release.json") for r in ("v1", "v2")
    ]


def test_where_spans_change_what_an_entry_sees_its_options_say_so() -> None:
    for study, named in (
        (plan("all", transcripts="asr"), []),
        (plan(), []),
        (plan(transcripts="asr"), ["2a-tfidf-zero-shot"]),
    ):
        for name in ("2a-tfidf-zero-shot", "2a-histogram-zero-shot", "2a-random"):
            assert ("spans" in study.shown_options(study.entries[name], "v2")) == (name in named)

"""Durations: the paper's against the releases', and what is said where videos are not here."""

import csv
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.benchmarks.spacewalk import presentation
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.durations import (
    OURS,
    before_merging,
    clips,
    measured,
    published,
    recordings,
    write_durations,
)
from stepline.config import validate
from stepline.datasets.schema import SPLITS, Recording, Release, Segment
from stepline.datasets.studies import study
from tests.benchmarks.spacewalk.conftest import MadeUp


def release(*segments: tuple[float, float, int], video: str = "10062019", name: str = "v0") -> Release:
    """A release with one test recording of such segments: start, end, label."""
    parts = tuple(
        Segment(start_s=start, end_s=end, start_frame=0, end_frame=1, label=label) for start, end, label in segments
    )
    recording = Recording(video=video, split="test", duration_s=segments[-1][1], segments=parts, steps=())
    splits = {"train": (), "val": (), "test": (video,)}
    return Release(study="spacewalk", name=name, fps=30.0, recordings={video: recording}, splits=splits)  # type: ignore[arg-type]


def test_of_the_papers_18_durations_16_are_the_releases_to_the_second(in_spacewalk: Path) -> None:
    for name in ("v0", "v1", "v2"):
        found = recordings(study("spacewalk").load(name))
        assert len(found) == 18
        assert {line.video: line.difference_s for line in found if line.status != "exact"} == {
            "01272021": -30,
            "02012021": -32,
        }
        assert sum(line.duration_s for line in found) / 3600 == pytest.approx(156.0, abs=0.05)


def test_the_release_has_the_papers_test_duration_and_not_its_average_clip(in_spacewalk: Path) -> None:
    lines = list(measured(study("spacewalk").load("v0"), paper=True))
    judged = {(line.measure, line.of): line for _, *pair in lines for line in pair if line.paper}
    test = judged["Test duration", "test, steps and Irrelevant"]
    assert (round(test.value or 0, 1), test.paper, test.status) == (119646.4, "119664", "within")
    clip = judged["Average clip length", "all splits, steps and Irrelevant"]
    assert (round(clip.value or 0, 2), clip.paper, clip.status) == (92.44, "89", "differs")
    assert len(judged) == 2
    averages = [line.value for _, *pair in lines for line in pair if line.measure == "Average clip length"]
    assert not [value for value in averages if 88.5 <= (value or 0) <= 89.5]
    assert {n for n, *_ in lines} == {3753, 1845, 411, 1497, 2268, 1179, 235, 854}


def test_a_part_of_a_second_is_cut_off_as_in_the_paper() -> None:
    exact = recordings(release((0, 31326.9, -1)))[0]
    assert (exact.difference_s, exact.status, exact.texts[3:5]) == (0, "exact", ("8:42:06", "8:42:06"))
    longer = recordings(release((0, 31327.0, -1)))[0]
    assert (longer.difference_s, longer.status) == (1, "differs")
    unlisted = recordings(release((0, 65.5, -1), video="mine"))[0]
    assert (unlisted.texts[3:5], unlisted.status) == (("1:05", ""), "ours")


def test_recordings_are_in_the_papers_order_then_ours() -> None:
    several = {video: release((0, 9, -1), video=video).recordings[video] for video in ("mine", "11222019", "10062019")}
    made = replace(release((0, 9, -1)), recordings=several)
    assert [line.video for line in recordings(made)] == ["10062019", "11222019", "mine"]


def test_of_the_papers_own_numbers_the_certificate_alone_is_copied() -> None:
    copied = [(line.dataset, line.measure) for line in published()]
    assert [measure for dataset, measure in copied if dataset == OURS] == ["Temporal certificate"]
    assert {measure for dataset, measure in copied if dataset != OURS} > {"Temporal certificate", "Test duration"}


def test_clips_are_segments_of_the_labels_that_count() -> None:
    made = release((0, 5, -1), (5, 7, 0), (7, 11, 2), (11, 12, -1))
    assert clips(made, SPLITS, 0) == [2, 4]
    assert clips(made, SPLITS, 1) == [4]
    assert clips(made, ("train",), 0) == []
    (all_n, all_clip, all_total), (n, clip, total), *_ = measured(made, paper=False)
    assert (all_n, all_clip.of, all_clip.value, all_total.value) == (2, "all splits, steps and Irrelevant", 3, 6)
    assert {all_clip.dataset, all_total.dataset} == {"spacewalk"}
    assert (n, clip.of, total.measure, total.status) == (2, "test, steps and Irrelevant", "Test duration", "ours")


@pytest.mark.parametrize(
    ("seconds", "name", "status", "difference"),
    [(119646, "v0", "within", "-18.00"), (119645, "v0", "differs", "-19.00"), (119664, "v1", "not comparable", "")],
)
def test_a_duration_is_compared_on_the_papers_release(seconds: int, name: str, status: str, difference: str) -> None:
    (_, _, total) = list(measured(release((0, seconds, 1), name=name), paper=True))[1]
    assert (total.status, total.texts[6]) == (status, difference)


def write_shots(video: str, shots: list[tuple[float, float]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = paths.shots("demo") / f"{video}.parquet"
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"start_s": [s for s, _ in shots], "end_s": [e for _, e in shots]}), path)


def test_shots_count_where_their_middle_is_labelled() -> None:
    made = release((0, 5, -1), (5, 8, 0), (8, 20, -1), (20, 30, 1), video="mine")
    write_shots("mine", [(0, 4), (4, 7), (7, 10), (10, 30), (29, 32)])
    assert before_merging("demo", made) == ([3, 20], 1)
    assert before_merging("demo", replace(made, recordings={})) == ([], 0)


def test_shots_that_are_there_are_measured_though_no_entry_uses_videos() -> None:
    plan = Spacewalk.of(validate({"spacewalk": {"text_encoders": ["tfidf"], "releases": ["v2"]}}), "spacewalk")
    assert presentation.duration_inputs(plan) == [plan.release_manifest("v2")]
    manifest = plan.pipeline.videos.manifests(paths.shots(plan.name))[1]
    manifest.parent.mkdir(parents=True)
    manifest.touch()
    assert presentation.duration_inputs(plan) == [plan.release_manifest("v2"), manifest]


def test_durations_are_made_again_for_other_releases_and_for_other_numbers_of_the_paper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def params(*releases: str) -> str:
        return presentation.duration_params(
            Spacewalk.configured(validate({"spacewalk": {"releases": [*releases]}}), "spacewalk")
        )

    before = {params("v1"), params("v1", "v2")}
    (tmp_path / "other.csv").write_text("video,date,paper\n")
    monkeypatch.setitem(presentation.PRINTED, "tableA1", tmp_path / "other.csv")
    assert len(before | {params("v1")}) == 3


def test_the_files_are_written_and_say_what_shots_need(made_up: MadeUp, monkeypatch: pytest.MonkeyPatch) -> None:
    from stepline.benchmarks.spacewalk.report import figure_durations

    plan = Spacewalk.configured(validate({"demo": {}}), "demo")
    vars(plan)["released"] = made_up.study
    first = {"recordings": {"a": made_up.release.recordings["a"]}, "splits": {"train": ("a",), "val": (), "test": ()}}
    releases: Any = {"first": replace(made_up.release, name="first", **first), "demo": made_up.release}
    monkeypatch.setattr(type(made_up.study), "load", lambda self, name: releases[name])
    monkeypatch.setattr(Spacewalk, "releases", [*releases])
    drawn: list[Any] = []
    draw = figure_durations.durations
    monkeypatch.setattr(figure_durations, "durations", lambda parts: drawn.append([*parts]) or draw(parts))
    write_durations(plan)
    folder = Path("results/demo")
    with open(folder / "tableA1.csv", newline="", encoding="utf-8") as file:
        assert {line["recording"]: line["status"] for line in csv.DictReader(file)} == dict.fromkeys("abcde", "ours")
    hours = sum(each.duration_s for each in made_up.release.recordings.values()) / 3600
    assert hours > 0.05
    assert f"{hours:.1f} h in total" in (folder / "tableA1.md").read_text()
    assert "paper's numbers" not in (folder / "tableA5.md").read_text()
    assert "| demo | all splits, steps and Irrelevant |" in (folder / "tableA5.md").read_text()
    names = "tableA1.csv", "tableA1.md", "tableA5.csv", "tableA5.md", "figureA2.svg"
    before = [(folder / name).read_bytes() for name in names]
    write_durations(plan)
    assert [(folder / name).read_bytes() for name in names] == before
    write_shots("a", [(segment.start_s, segment.end_s) for segment in made_up.release.recordings["a"].segments])
    write_durations(plan)
    assert (folder / "figureA2.svg").read_bytes() != before[-1]
    of_video = {
        video: [each.end_s - each.start_s for each in recording.segments if each.label >= 0]
        for video, recording in made_up.release.recordings.items()
    }
    shots, labelled = drawn[-1]
    assert list(shots.seconds) == pytest.approx(of_video["a"])
    assert sorted(labelled.seconds) == sorted(chain(*of_video.values()))

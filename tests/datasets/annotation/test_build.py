import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepline.asr import released
from stepline.datasets import spacewalk
from stepline.datasets.annotation.build import Labelled, annotation_item, check_labels, covered, merged, write_release
from stepline.datasets.annotation.clips import read_clips
from stepline.datasets.annotation.export import write_csv
from stepline.datasets.annotation.steps import narration, read_split, read_steps, steps_item
from stepline.datasets.annotation.votes import majority, read_votes
from stepline.datasets.schema import SPLITS, Release, Segment
from stepline.errors import ConfigError, ReleaseError
from stepline.io import sha256_file, write_json

FOLDER = Path("datasets/mine/release")


def test_neighbours_of_one_label_are_merged_and_gaps_are_unavailable() -> None:
    spans = covered([(0.5, 1.0), (1.0, 2.0), (2.0, 2.5), (3.0, 4.0), (4.0, 5.0)], [1, 1, 0, 0, -1])
    assert merged(spans) == [
        Labelled(0.0, 0.5, -1),
        Labelled(0.5, 2.0, 1),
        Labelled(2.0, 2.5, 0),
        Labelled(2.5, 3.0, -1),
        Labelled(3.0, 4.0, 0),
        Labelled(4.0, 5.0, -1),
    ]


lengths = st.lists(st.tuples(st.floats(0, 5), st.floats(0.1, 9), st.integers(-1, 3)), min_size=1, max_size=12)


@given(lengths)
def test_merging_keeps_every_second_and_is_done_once(drawn: list[tuple[float, float, int]]) -> None:
    clips: list[tuple[float, float]] = []
    for gap_s, length_s, _ in drawn:
        start_s = (clips[-1][1] if clips else 0.0) + gap_s
        clips.append((start_s, start_s + length_s))
    labels = [label for _, _, label in drawn]
    segments = merged(covered(clips, labels))
    assert segments[0].start_s == 0
    assert segments[-1].end_s == clips[-1][1]
    assert all(a.end_s == b.start_s and a.label != b.label for a, b in pairwise(segments))
    for (start_s, end_s), label in zip(clips, labels, strict=True):
        assert sum(each.start_s <= start_s and end_s <= each.end_s and each.label == label for each in segments) == 1
    for label in {*labels} - {-1}:
        kept_s = sum(each.end_s - each.start_s for each in segments if each.label == label)
        given_s = sum(b - a for (a, b), each in zip(clips, labels, strict=True) if each == label)
        assert kept_s == pytest.approx(given_s)
    assert merged(segments) == segments


def test_frames_are_rounded_and_half_open() -> None:
    first, second = annotation_item("a", [Labelled(0.0, 1.01, -1), Labelled(1.01, 2.0, 3)], 29.97)
    assert first == {"video_start": 0.0, "video_end": 1.01, "frame_start": 0, "frame_end": 30, "label": -1}
    assert (second["frame_start"], second["frame_end"]) == (30, 60)
    assert list(first) == ["video_start", "video_end", "frame_start", "frame_end", "label"]


def test_every_label_must_occur() -> None:
    check_labels("a", [-1, 0, 1, 2, 1], 2)
    with pytest.raises(ConfigError, match="^no clip of a has the label step 2: remove it from the steps and renumber"):
        check_labels("a", [0, 1, 3], 3)
    with pytest.raises(
        ConfigError, match="^no clip of a has the label Irrelevant: label the clips that show no step with it$"
    ):
        check_labels("a", [1, 2, -1], 2)


def write(segments: list[Labelled]) -> Release:
    steps = [{"index": 0, "caption": "Irrelevant", "transcript": "A break."}]
    steps += [{"index": 1, "caption": "Öffnen", "transcript": "", "animation_start": 0.0, "animation_end": 1.0}]
    return write_release(
        FOLDER,
        study="mine",
        fps=10.0,
        annotation={"a": annotation_item("a", segments, 10.0)},
        steps={"a": steps},
        split={"train": [], "val": [], "test": ["a"]},
    )


def test_the_release_is_read_as_any_other() -> None:
    release = write([Labelled(0.0, 1.0, -1), Labelled(1.0, 2.0, 1), Labelled(2.0, 3.0, 0)])
    assert release == spacewalk.load(FOLDER, study="mine", name="release", fps=10.0)
    assert release.splits == {"train": (), "val": (), "test": ("a",)}
    segment = Segment(start_s=1.0, end_s=2.0, start_frame=10, end_frame=20, label=1)
    assert release.recordings["a"].segments[1] == segment
    assert json.loads((FOLDER / "release.json").read_bytes())["fps"] == 10.0


def test_a_clip_without_a_frame_is_one_line() -> None:
    with pytest.raises(ConfigError, match="^a has a clip at 1 s that is shorter than a frame at 10 fps$"):
        annotation_item("a", [Labelled(0.0, 1.0, 1), Labelled(1.0, 1.04, 0)], 10.0)


def test_a_release_that_cannot_be_read_back_replaces_none() -> None:
    write([Labelled(0.0, 1.0, 1), Labelled(1.0, 2.0, 0)])
    before = sha256_file(FOLDER / "release.json")
    with pytest.raises(ReleaseError, match="steps do not match the annotation of a"):
        write([Labelled(0.0, 1.0, 1), Labelled(1.0, 2.0, 2)])
    assert sha256_file(FOLDER / "release.json") == before
    assert [path.name for path in FOLDER.parent.iterdir()] == ["release"]


def real_release(folder: Path) -> Release:
    """Return v2, with the released files put where a fetch would."""
    names = {
        "data/annotation.json": "annotation.json",
        "data/steps.json": "steps.json",
        "tasks/split.json": "split.json",
    }
    for path, name in names.items():
        Path("v2", path).parent.mkdir(parents=True, exist_ok=True)
        Path("v2", path).write_bytes((folder / name).read_bytes())
    write_json("v2/release.json", {"files": {path: sha256_file(Path("v2", path)) for path in names}})
    return spacewalk.load(Path("v2"), study="spacewalk", name="v2", fps=29.97)


def said(folder: Path, video: str) -> list[tuple[str, float, float]]:
    return [(each.text, each.start_s, each.end_s) for each in released.read(folder / f"transcripts/{video}.csv")]


def test_real_narrations_follow_from_transcripts_and_animations_455_of_455(real_data: Path) -> None:
    folder = real_data / "spacewalk/v2"
    steps = [
        (step.transcript, narration(sentences, step.animation_s))
        for video, recording in real_release(folder).recordings.items()
        for sentences in [said(folder, video)]
        for step in recording.steps
        if step.animation_s is not None
    ]
    assert len(steps) == 455
    assert [(told, made) for told, made in steps if told != made] == []
    assert sum(made == "" for _, made in steps) == 12


def test_the_real_release_goes_out_as_csv_and_comes_back_byte_for_byte(real_data: Path) -> None:
    folder, out = real_data / "spacewalk/v2", Path("out")
    release = real_release(folder)
    write_csv(release, out)
    clips = read_clips(out / "clips.csv")
    split = read_split(out / "split.csv", clips)
    durations_s = {video: recording.duration_s for video, recording in release.recordings.items()}
    steps = read_steps(out / "steps.csv", durations_s)
    votes = read_votes([out / "labels.csv"], clips, {video: len(each) - 1 for video, each in steps.items()})
    annotation: dict[str, Any] = {}
    order = json.loads((folder / "annotation.json").read_bytes())
    for video in order:
        labels = majority([list(votes[video].get(clip, {}).values()) for clip in clips[video]])
        annotation[video] = annotation_item(video, merged(covered(clips[video].values(), labels)), 29.97)
    made = {video: steps_item(steps[video], said(folder, video)) for video in order}
    write_release(FOLDER, study="mine", fps=29.97, annotation=annotation, steps=made, split=split)
    assert (FOLDER / "data/annotation.json").read_bytes() == (folder / "annotation.json").read_bytes()
    assert (FOLDER / "tasks/split.json").read_bytes() == (folder / "split.json").read_bytes()
    # Two released captions end in a space, which a CSV's reader cuts off.
    assert (FOLDER / "data/steps.json").read_text() == (folder / "steps.json").read_text().replace(' ",', '",')
    assert {part: len(videos) for part, videos in split.items()} == dict(zip(SPLITS, (10, 2, 6), strict=True))

"""Spacewalk-18: its three public releases, and the reader of their files.

v0 (2024-04) contains the samples of the paper's tables. v1 (2024-07) corrects the frame rate and bounds the retrieval
samples. v2 (2025-11) corrects the labels of 10062019 and drops the retrieval task.
"""

import csv
import itertools
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from stepline.availability import check_video_id
from stepline.datasets.release import ReleaseFile, checked_file
from stepline.datasets.schema import SPLITS, Recording, Release, Segment, Split, Step, Video
from stepline.errors import ReleaseError
from stepline.io import parse_json
from stepline.mirror import Wanted

REPOSITORY = "https://raw.githubusercontent.com/brown-palm/Spacewalk-18-benchmark"
FPS = {"v0": 30.0, "v1": 29.97, "v2": 29.97}
"""The frame rate of each release's frame indices. The recordings have 30000/1001 fps; v0 used 30."""


def release_files(release: str) -> tuple[ReleaseFile, ...]:
    """Return the files of a release, with size and sha256."""
    return tuple(
        ReleaseFile(
            path=row["path"],
            wanted=Wanted(path=f"spacewalk/{release}/{row['path']}", sha256=row["sha256"], size=int(row["size"])),
            url=f"{REPOSITORY}/{row['commit']}/{row['path']}",
        )
        for row in _table("spacewalk_files.csv")
        if row["release"] == release
    )


def videos() -> tuple[Video, ...]:
    """Return the 18 recordings, 156.0 hours in total."""
    return tuple(
        Video(
            id=row["video"],
            split=row["split"],  # type: ignore[arg-type]
            duration_s=float(row["duration_s"]),
            url=f"https://www.youtube.com/watch?v={row['youtube_id']}",
            path=f"spacewalk/videos/{row['video']}.mp4",
        )
        for row in _table("spacewalk_videos.csv")
    )


def _table(name: str) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(files("stepline.datasets").joinpath(name).read_text(encoding="utf-8").splitlines())


def load(folder: Path, *, study: str, name: str, fps: float) -> Release:
    """Return the release in ``folder``.

    Raises ReleaseError if a file is absent, changed or has another form, if steps and annotation do not match, or if a
    video id is not valid as a file name.
    """

    def read(path: str) -> Any:
        file = checked_file(folder, path, study=study, name=name)
        try:
            return parse_json(file.read_bytes())
        except ValueError as error:
            raise ReleaseError(f"{file} is not JSON: {error}") from None

    annotation, steps, split = read("data/annotation.json"), read("data/steps.json"), read("tasks/split.json")
    try:
        recordings = {
            video: _recording(video, part, annotation, steps, folder)
            for part in SPLITS
            for video in map(check_video_id, split[part])
        }
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ReleaseError(f"{folder} is not in Spacewalk-18's format: {type(error).__name__}: {error}") from None
    return Release(
        study=study,
        name=name,
        fps=fps,
        recordings=recordings,
        splits={part: tuple(split[part]) for part in SPLITS},
    )


def _recording(video: str, split: Split, annotation: dict[str, Any], steps: dict[str, Any], folder: Path) -> Recording:
    for name, content in (("annotation.json", annotation), ("steps.json", steps)):
        if video not in content:
            raise ReleaseError(f"{folder}/data/{name} has no recording {video}, which tasks/split.json lists")
    segments = _segments(video, annotation[video], folder)
    labels = {segment.label for segment in segments} - {-1}
    if labels != set(range(len(steps[video]))):
        raise ReleaseError(
            f"{folder}: steps do not match the annotation of {video}: data/steps.json has labels "
            f"0..{len(steps[video]) - 1}, data/annotation.json uses {', '.join(map(str, sorted(labels)))}"
        )
    return Recording(
        video=video,
        split=split,
        duration_s=segments[-1].end_s,
        segments=segments,
        steps=_steps(video, steps[video], folder),
    )


def _segments(video: str, items: list[dict[str, Any]], folder: Path) -> tuple[Segment, ...]:
    segments = tuple(
        Segment(
            start_s=item["video_start"],
            end_s=item["video_end"],
            start_frame=item["frame_start"],
            end_frame=item["frame_end"],
            label=item["label"],
        )
        for item in items
    )
    if not segments:
        raise ReleaseError(f"{folder}/data/annotation.json has no segment of {video}")
    for segment in segments:
        if not (segment.start_s < segment.end_s and segment.start_frame < segment.end_frame):
            raise ReleaseError(f"{folder}: the segment of {video} at {segment.start_s} s does not end after it starts")
    for before, after in itertools.pairwise(segments):
        if before.end_s != after.start_s:
            raise ReleaseError(f"{folder}: segments of {video} are not contiguous at {after.start_s} s")
    return segments


def _steps(video: str, items: list[dict[str, Any]], folder: Path) -> tuple[Step, ...]:
    steps = tuple(map(_step, items))
    where = f"{folder}/data/steps.json"
    if len(steps) < 2:
        raise ReleaseError(f"{where} has no step of {video} other than Irrelevant")
    if steps[0].animation_s is not None:
        raise ReleaseError(f"{where}: step 0 of {video} is Irrelevant and must have no animation")
    for label, step in enumerate(steps[1:], 1):
        if step.animation_s is None:
            raise ReleaseError(f"{where}: step {label} of {video} has no animation")
        if not 0 <= step.animation_s[0] < step.animation_s[1]:
            raise ReleaseError(f"{where}: the animation of step {label} of {video} does not end after it starts")
    return steps


def _step(item: dict[str, Any]) -> Step:
    # v0 and v1 store these times as text
    animation = (float(item["animation_start"]), float(item["animation_end"])) if "animation_start" in item else None
    transcript = item["transcript"] if "transcript" in item else item["transcription"]
    return Step(caption=item["caption"], transcript=transcript, animation_s=animation)

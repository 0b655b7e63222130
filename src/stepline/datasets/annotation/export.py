"""Exports a release as the CSV files from which it could be built."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stepline.datasets.annotation.clips import write_clips
from stepline.datasets.schema import Release
from stepline.io import csv_text, write_text


def write_csv(release: Release, folder: Path) -> None:
    """Write ``clips.csv``, ``labels.csv``, ``steps.csv`` and ``split.csv``.

    The segments become clips, and the release is the only annotator. Unavailable segments have no label.
    """
    recordings = release.recordings.items()
    labels = [
        (video, number, release.name, segment.label)
        for video, recording in recordings
        for number, segment in enumerate(recording.segments)
        if segment.label >= 0
    ]
    steps: list[Sequence[Any]] = []
    for video, recording in recordings:
        steps.append((video, 0, recording.steps[0].transcript, "", ""))
        for index, step in enumerate(recording.steps[1:], 1):
            steps.append((video, index, step.caption, *(step.animation_s or ())))
    split = [(video, part) for part, videos in release.splits.items() for video in videos]
    write_clips(
        folder / "clips.csv",
        {
            video: {number: (segment.start_s, segment.end_s) for number, segment in enumerate(recording.segments)}
            for video, recording in recordings
        },
    )
    write_text(folder / "labels.csv", csv_text(("video", "clip", "annotator", "label"), labels))
    write_text(
        folder / "steps.csv", csv_text(("video", "step", "caption", "animation_start_s", "animation_end_s"), steps)
    )
    write_text(folder / "split.csv", csv_text(("video", "split"), split))

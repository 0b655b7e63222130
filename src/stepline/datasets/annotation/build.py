"""Builds a release in Spacewalk-18's form from clips, their labels and the steps."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from stepline.datasets import spacewalk
from stepline.datasets.annotation.votes import UNAVAILABLE
from stepline.datasets.release import OWN
from stepline.datasets.schema import Release, Split
from stepline.errors import ConfigError
from stepline.io import atomic_dir, sha256_file, write_json, write_text


class Labelled(NamedTuple):
    """[start_s, end_s) of a recording, and its label."""

    start_s: float
    end_s: float
    label: int


def covered(clips: Iterable[tuple[float, float]], labels: Sequence[int]) -> list[Labelled]:
    """Return the labelled clips, with unavailable spans from 0 s on where no clip is."""
    spans: list[Labelled] = []
    last_s = 0.0
    for (start_s, end_s), label in zip(clips, labels, strict=True):
        if last_s < start_s:
            spans.append(Labelled(last_s, start_s, UNAVAILABLE))
        spans.append(Labelled(start_s, end_s, label))
        last_s = end_s
    return spans


def merged(spans: Iterable[Labelled]) -> list[Labelled]:
    """Return contiguous spans, with neighbours of the same label merged (Spacewalk-18, Sec. 3.1)."""
    made: list[Labelled] = []
    for span in spans:
        if made and made[-1].label == span.label:
            made[-1] = made[-1]._replace(end_s=span.end_s)
        else:
            made.append(span)
    return made


def annotation_item(video: str, segments: Iterable[Labelled], fps: float) -> list[dict[str, Any]]:
    """Return a recording's part of ``annotation.json``: frames are half open, frame = round(t * fps), as in v2.

    Raises ConfigError if a segment contains no frame.
    """
    items = []
    for start_s, end_s, label in segments:
        start, end = round(start_s * fps), round(end_s * fps)
        if start >= end:
            raise ConfigError(f"{video} has a clip at {start_s:g} s that is shorter than a frame at {fps:g} fps")
        times = {"video_start": start_s, "video_end": end_s}
        items.append({**times, "frame_start": start, "frame_end": end, "label": label})
    return items


def check_labels(video: str, labels: Iterable[int], n_steps: int) -> None:
    """Raise ConfigError if a recording does not have all labels 0..K, which the form requires."""
    if lost := sorted(set(range(n_steps + 1)) - set(labels)):
        advice = (
            "remove it from the steps and renumber the others"
            if lost[0]
            else "label the clips that show no step with it"
        )
        name = f"step {lost[0]}" if lost[0] else "Irrelevant"
        raise ConfigError(f"no clip of {video} has the label {name}: {advice}")


def write_release(
    folder: Path,
    *,
    study: str,
    fps: float,
    annotation: dict[str, list[dict[str, Any]]],
    steps: dict[str, list[dict[str, Any]]],
    split: dict[Split, list[str]],
) -> Release:
    """Write the release atomically, byte for byte in the released form, and return it as read back.

    ``release.json`` contains the sha256 of the files and the frame rate of the frame indices.
    Raises ReleaseError if it cannot be read back.
    """
    files = {"data/annotation.json": annotation, "data/steps.json": steps, "tasks/split.json": split}
    with atomic_dir(folder) as part:
        for path, content in files.items():
            write_text(part / path, json.dumps(content, indent=4))
        sha256 = {path: sha256_file(part / path) for path in files}
        write_json(part / "release.json", {"study": study, "release": OWN, "fps": fps, "files": sha256})
        return spacewalk.load(part, study=study, name=OWN, fps=fps)

"""The steps of recordings, with their captions and animation intervals, and the splits of recordings."""

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepline.datasets.folder import named
from stepline.datasets.lines import lines
from stepline.datasets.schema import SPLITS, Split, Step
from stepline.errors import ConfigError

IRRELEVANT = "Irrelevant"
COLUMNS = ("video", "step", "caption", "animation_start_s", "animation_end_s")
DESCRIPTION = "None of the steps."
"""The default description of Irrelevant."""


def read_split(file: Path, videos: Iterable[str]) -> dict[Split, list[str]]:
    """Return the videos of each split, in the listed order, from a CSV file with ``video`` and ``split``.

    Raises ConfigError with file and line if a video is not in ``videos``, is listed twice, or has an unknown split.
    """
    known, found = set(videos), dict[str, Split]()
    for number, line in lines("--split", str(file), required=("video", "split"), optional=()):
        where, video = f"{file}, line {number}", named(line["video"], known)
        if video is None:
            raise ConfigError(f"{where}: {line['video']!r} is not a video with clips")
        if video in found:
            raise ConfigError(f"{where}: video {video} is listed twice")
        if line["split"] not in SPLITS:
            raise ConfigError(f"{where}: split {line['split']!r} is not one of {', '.join(SPLITS)}")
        found[video] = line["split"]
    if not found:
        raise ConfigError(f"{file} contains no videos")
    return {part: [video for video, split in found.items() if split == part] for part in SPLITS}


def read_steps(file: Path, durations_s: Mapping[str, float]) -> dict[str, list[Step]]:
    """Return the steps 0..K of each video of ``durations_s``, without the transcripts of 1..K.

    file: CSV with video, step, caption, animation_start_s, animation_end_s. The optional line of step 0 has the
    description of Irrelevant as its caption and no times.
    Raises ConfigError with file and line if a line is not a step, and if a video's steps are not 1..K.
    """
    found: dict[str, dict[int, Step]] = {video: {} for video in durations_s}
    for number, line in lines("--steps", str(file), required=COLUMNS, optional=()):
        where, video = f"{file}, line {number}", named(line["video"], durations_s)
        if video is None:
            raise ConfigError(
                f"{where}: {line['video']!r} is not one of the annotated videos: {', '.join(durations_s)}"
            )
        if not line["step"].isdecimal():
            raise ConfigError(f"{where}: step {line['step']!r} must be a whole number from 0")
        step = int(line["step"])
        if step in found[video]:
            raise ConfigError(f"{where}: step {step} of {video} is listed twice")
        found[video][step] = _step(f"{where}: step {step} of {video}", step, line, durations_s[video])
    for video, steps in found.items():
        steps.setdefault(0, Step(caption=IRRELEVANT, transcript=DESCRIPTION, animation_s=None))
        if len(steps) < 2:
            raise ConfigError(f"{file} has no step of {video}")
        if lost := sorted(set(range(max(steps))) - steps.keys()):
            raise ConfigError(f"{file}: {video} has a step {max(steps)} but no step {lost[0]}: number steps from 1")
    return {video: [steps[step] for step in range(len(steps))] for video, steps in found.items()}


def _step(what: str, step: int, line: dict[str, str], duration_s: float) -> Step:
    times = line["animation_start_s"], line["animation_end_s"]
    if not line["caption"]:
        raise ConfigError(f"{what} has no caption")
    if step == 0:
        if any(times):
            raise ConfigError(f"{what} is Irrelevant, which has no animation: leave its times empty")
        return Step(caption=IRRELEVANT, transcript=line["caption"], animation_s=None)
    if not all(times):
        raise ConfigError(f"{what} has no animation: give its start and end in seconds")
    try:
        start_s, end_s = map(float, times)
    except ValueError:
        start_s, end_s = math.nan, math.nan
    if not 0 <= start_s < end_s <= duration_s:
        raise ConfigError(
            f"{what}: its animation must end after it starts, within the {duration_s:g} s of the video, "
            f"not {times[0]} to {times[1]}"
        )
    return Step(caption=line["caption"], transcript="", animation_s=(start_s, end_s))


def narration(sentences: Iterable[tuple[str, float, float]], interval_s: tuple[float, float]) -> str:
    """Return the sentences that overlap the open interval, joined by spaces (strict at both ends).

    sentences: text, start and end in seconds. This rule reproduces all 455 narrations of the release.
    """
    start_s, end_s = interval_s
    return " ".join(text for text, begin_s, over_s in sentences if begin_s < end_s and over_s > start_s)


def steps_item(steps: Sequence[Step], sentences: Sequence[tuple[str, float, float]]) -> list[dict[str, Any]]:
    """Return a recording's part of ``steps.json``, with the narration of each animation."""
    items: list[dict[str, Any]] = []
    for index, step in enumerate(steps):
        item: dict[str, Any] = {"index": index, "caption": step.caption, "transcript": step.transcript}
        if step.animation_s is not None:
            item["transcript"] = narration(sentences, step.animation_s)
            item["animation_start"], item["animation_end"] = step.animation_s
        items.append(item)
    return items

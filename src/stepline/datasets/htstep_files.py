"""The files of HT-Step in their released form: the taxonomy, the splits, the annotation and its candidates.

The last two are not public. Their form is inferred from the authors' evaluation code. All fields that are read are
checked; other keys are ignored.
"""

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

from stepline.availability import check_video_id
from stepline.errors import ReleaseError
from stepline.io import parse_json

SPLITS = ("train", "val_seen", "val_unseen", "test_seen", "test_unseen")
TAXONOMY, VIDEOS = "taxonomy.csv", "video_splits.json"
NUMBERS = int, float
LAST_STEP = 5784
"""The largest step id. 827 of the ids from 0 belong to steps that the taxonomy does not list."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of an article. id: ``global_step_index``, unique over all articles, with gaps.

    variation: the article of the activity, "" if the taxonomy names none. index: its position in the published article,
    from 1; the taxonomy does not list all positions. paragraph: "" for none.
    """

    id: int
    activity: str
    variation: str
    index: int
    headline: str
    paragraph: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """A part of a video that shows a step: 0 <= start_s <= end_s, in seconds.

    match: ``full`` if the whole headline of the step is shown, ``partial``, or "" if it is unknown or not read.
    """

    start_s: float
    end_s: float
    step: int
    match: str


def taxonomy(file: Path) -> dict[int, Step]:
    """Return the steps by ascending id; the steps of an article are in its order.

    Raises ReleaseError if the file has another form.
    """
    try:
        with file.open(newline="", encoding="utf-8") as content:
            steps = [_step(row) for row in csv.DictReader(content)]
    except (AttributeError, csv.Error, KeyError, ValueError) as error:
        raise _other_form(file, f"{type(error).__name__}: {error}") from None
    if not steps:
        raise _other_form(file, "it lists no steps")
    last_id, last_index = -1, dict[tuple[str, str], int]()
    for step in steps:
        article = step.activity, step.variation
        if step.id <= last_id or step.index <= last_index.get(article, 0):
            raise _other_form(file, f"step {step.id} is listed twice, or after a later one")
        last_id, last_index[article] = step.id, step.index
    return {step.id: step for step in steps}


def _step(row: Mapping[str, str]) -> Step:
    variation = "" if row["variation"] == "none" else row["variation"]
    index = row["variation_index"].removeprefix(variation)
    if not index.isdecimal() or not row["activity"] or not row["headline"]:
        raise ValueError(f"step {row['global_step_index']} has the place {index!r}, no activity or no headline")
    return Step(
        id=int(row["global_step_index"]),
        activity=row["activity"],
        variation=variation,
        index=int(index),
        headline=row["headline"],
        paragraph=row["paragraph"],
    )


def split_videos(file: Path) -> dict[str, tuple[str, ...]]:
    """Return the videos of each split in the file's order.

    Raises ReleaseError if the file has another form or lists a video twice.
    """
    content = _records(file)
    try:
        found = {split: tuple(map(check_video_id, content[split])) for split in SPLITS}
    except (KeyError, ReleaseError, TypeError) as error:
        raise _other_form(file, f"{type(error).__name__}: {error}") from None
    if more := content.keys() - {*SPLITS}:
        raise _other_form(file, f"the split {min(more)!r} is unknown")
    everything = [video for videos in found.values() for video in videos]
    if len({*everything}) < len(everything):
        raise _other_form(file, "a video is listed twice")
    return found


@dataclass(frozen=True, kw_only=True)
class Match:
    """The key of a segment that states how it matches its step, and the key's values for ``full`` and ``partial``."""

    key: str
    full: str
    partial: str

    def read(self, record: Mapping[str, Any]) -> str:
        """Return the match of a segment, "" without the key; raise ValueError for an unknown value.

        A value that is not a text is compared in JSON notation, such as ``true``.
        """
        if self.key not in record:
            return ""
        value = record[self.key]
        text = value if isinstance(value, str) else json.dumps(value)
        if text == self.full:
            return "full"
        if text != self.partial:
            raise ValueError(f"has {text!r} under {self.key!r}, not {self.full!r} or {self.partial!r}")
        return "partial"


def annotations(
    file: Path, steps: Mapping[int, Step], split_of: Mapping[str, str], match: Match | None
) -> dict[str, tuple[str, tuple[Segment, ...]]]:
    """Return the activity and the segments of each video in the file; "" if a video without segments names no activity.

    steps: the taxonomy. split_of: the split of each known video. Raises ReleaseError with the name of the video if the
    video or part of its record is unknown or has another form, and if no segment has the key of ``match``.
    """
    activities = {step.activity for step in steps.values()}
    found: dict[str, tuple[str, tuple[Segment, ...]]] = {}
    for video, record in _records(file).items():
        try:
            _check_known(video, split_of)
            if record["subset"] != split_of[video]:
                raise ValueError(f"is in the subset {record['subset']!r}, but in {split_of[video]!r} in {VIDEOS}")
            if type(record["annotations"]) is not list:
                raise ValueError("has annotations that are not a list")
            segments = tuple(_segment(each, match) for each in record["annotations"])
            activity = record["activity"] if segments else record.get("activity", "")
            if activity not in activities and (segments or activity != ""):
                raise ValueError(f"has the activity {activity!r}, which {TAXONOMY} does not list")
            _check_article(activity, segments, steps)
        except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
            raise _of_video(file, video, error) from None
        found[video] = activity, segments
    matches = [segment.match for _, segments in found.values() for segment in segments]
    if match and matches and not any(matches):
        raise ReleaseError(f"{file}: no segment has the key {match.key!r}: correct `htstep.match.key`")
    return found


def _segment(record: Mapping[str, Any], match: Match | None) -> Segment:
    step, bounds_s = record["id"], record["segment"]
    if type(step) is not int:
        raise ValueError(f"has the step {step!r}, which is not a whole number")
    if type(bounds_s) is not list or len(bounds_s) != 2:
        raise ValueError(f"has the segment {bounds_s!r}, which is not [start, end]")
    start_s, end_s = bounds_s
    if type(start_s) not in NUMBERS or type(end_s) not in NUMBERS:
        raise ValueError(f"has the segment {bounds_s!r}, whose bounds are not numbers")
    if not 0 <= start_s <= end_s < inf:
        raise ValueError(f"has a segment from {start_s} to {end_s} s")
    return Segment(start_s=float(start_s), end_s=float(end_s), step=step, match=match.read(record) if match else "")


def _check_article(activity: str, segments: tuple[Segment, ...], steps: Mapping[int, Step]) -> None:
    """Raise ValueError if the segments do not all belong to one article of the activity."""
    variations = set()
    for segment in segments:
        if (step := steps.get(segment.step)) is None:
            raise ValueError(f"has step {segment.step}, which {TAXONOMY} does not list")
        if step.activity != activity:
            raise ValueError(f"has the activity {activity!r}, but step {step.id} of {step.activity!r}")
        variations.add(step.variation)
    if len(variations) > 1:
        raise ValueError(f"has steps of several variations, {', '.join(sorted(variations))}")


def candidates(file: Path, steps: Mapping[int, Step], split_of: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """Return the candidate steps of each video in the file, in the article's order.

    Candidates that the taxonomy does not list are left out. steps, split_of: as in ``annotations``. Raises ReleaseError
    with the name of the video if it is unknown, or if its candidates are not ids, belong to two activities or repeat.
    """
    found: dict[str, tuple[int, ...]] = {}
    for video, ids in _records(file).items():
        try:
            _check_known(video, split_of)
            if type(ids) is not list or not all(type(each) is int and 0 <= each <= LAST_STEP for each in ids):
                raise ValueError(f"has candidates that are not a list of ids from 0 to {LAST_STEP}")
            if len({*ids}) < len(ids):
                raise ValueError("lists a candidate twice")
            known = sorted(steps.keys() & ids)
            if len(of := {steps[each].activity for each in known}) > 1:
                raise ValueError(f"has candidates of several activities, {', '.join(sorted(of))}")
        except ValueError as error:
            raise _of_video(file, video, error) from None
        found[video] = tuple(known)
    return found


def summary(file: Path) -> tuple[frozenset[str], bool]:
    """Return the splits with segments in the annotation, and whether a record is ``made``.

    Only the returned facts are checked. Raises ReleaseError with the name of the video if they have another form.
    """
    labelled, made = set[str](), False
    for video, record in _records(file).items():
        try:
            labelled |= {record["subset"]} if record["annotations"] else set()
            made = made or record.get("made") is True
        except (AttributeError, KeyError, TypeError) as error:
            raise _of_video(file, video, error) from None
    return frozenset(labelled), made


def _check_known(video: str, split_of: Mapping[str, str]) -> None:
    if video not in split_of:
        raise ValueError(f"is not in {VIDEOS}")


def _records(file: Path) -> dict[str, Any]:
    try:
        content = parse_json(file.read_bytes())
    except ValueError as error:
        raise _other_form(file, f"{type(error).__name__}: {error}") from None
    if not isinstance(content, dict):
        raise _other_form(file, "it is not a JSON object")
    return content


def _of_video(file: Path, video: str, error: Exception) -> ReleaseError:
    reason = str(error) if type(error) is ValueError else f"is not in HT-Step's format: {type(error).__name__}: {error}"
    return ReleaseError(" ".join(f"{file}: {video} {reason}".split()))


def _other_form(file: Path, reason: str) -> ReleaseError:
    return ReleaseError(" ".join(f"{file} is not in HT-Step's format: {reason}".split()))

"""The files of HT-Step in their released form: the taxonomy, the splits, the annotation and its candidates.

The last two were not seen when this was written. Their form is that which the authors' evaluation reads: what is read
here is checked, and other keys are allowed and not looked at.
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
"""The largest id of a step. Of the ids from 0, 827 are of steps that the taxonomy does not list."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """A step of an article. id: ``global_step_index``, unique over all articles, with gaps.

    variation: the article of the activity that it is of, "" where the taxonomy names none. index: its place in the
    article as published, from 1; the taxonomy does not list the steps of all places. paragraph: "" of none.
    """

    id: int
    activity: str
    variation: str
    index: int
    headline: str
    paragraph: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Segment:
    """A part of a video that shows a step: 0 <= start_s <= end_s, in seconds, of any length.

    match: ``full`` where all of the step's headline is shown, ``partial``, or "" where the annotation does not say or
    is not asked.
    """

    start_s: float
    end_s: float
    step: int
    match: str


def taxonomy(file: Path) -> dict[int, Step]:
    """Return the steps by id, ascending; those of an article are in its order.

    Raises ReleaseError where the file is of another form.
    """
    try:
        with file.open(newline="", encoding="utf-8") as content:
            steps = [_step(row) for row in csv.DictReader(content)]
    except (AttributeError, csv.Error, KeyError, ValueError) as error:
        raise _other_form(file, f"{type(error).__name__}: {error}") from None
    if not steps:
        raise _other_form(file, "it lists no step")
    last_id, last_index = -1, dict[tuple[str, str], int]()
    for step in steps:
        article = step.activity, step.variation
        if step.id <= last_id or step.index <= last_index.get(article, 0):
            raise _other_form(file, f"step {step.id} stands twice, or behind a later one")
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

    Raises ReleaseError where the file is of another form, or a video stands twice.
    """
    content = _records(file)
    try:
        found = {split: tuple(map(check_video_id, content[split])) for split in SPLITS}
    except (KeyError, ReleaseError, TypeError) as error:
        raise _other_form(file, f"{type(error).__name__}: {error}") from None
    if more := content.keys() - {*SPLITS}:
        raise _other_form(file, f"the split {min(more)!r} is not known")
    everything = [video for videos in found.values() for video in videos]
    if len({*everything}) < len(everything):
        raise _other_form(file, "a video stands twice")
    return found


@dataclass(frozen=True, kw_only=True)
class Match:
    """How a segment says what it shows of a step: the key, and the texts that stand for ``full`` and ``partial``."""

    key: str
    full: str
    partial: str

    def read(self, record: Mapping[str, Any]) -> str:
        """Return what a segment says, "" without the key; raise ValueError for another text.

        A value that is no text is compared as JSON writes it: ``true``.
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
    """Return the activity and the segments of each video in the file; "" where a video without segments names none.

    steps: the taxonomy. split_of: the split of each known video. Raises ReleaseError that names the video where it or
    something of it is not known or of another form, and where no segment has the key of ``match``.
    """
    activities = {step.activity for step in steps.values()}
    found: dict[str, tuple[str, tuple[Segment, ...]]] = {}
    for video, record in _records(file).items():
        try:
            _check_known(video, split_of)
            if record["subset"] != split_of[video]:
                raise ValueError(f"is of the subset {record['subset']!r}, and of {split_of[video]!r} in {VIDEOS}")
            if type(record["annotations"]) is not list:
                raise ValueError("has annotations that are no list")
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
        raise ValueError(f"has the step {step!r}, which is no whole number")
    if type(bounds_s) is not list or len(bounds_s) != 2:
        raise ValueError(f"has the segment {bounds_s!r}, which is no [start, end]")
    start_s, end_s = bounds_s
    if type(start_s) not in NUMBERS or type(end_s) not in NUMBERS:
        raise ValueError(f"has the segment {bounds_s!r}, which is not of numbers")
    if not 0 <= start_s <= end_s < inf:
        raise ValueError(f"has a segment from {start_s} to {end_s} s")
    return Segment(start_s=float(start_s), end_s=float(end_s), step=step, match=match.read(record) if match else "")


def _check_article(activity: str, segments: tuple[Segment, ...], steps: Mapping[int, Step]) -> None:
    """Raise ValueError where the segments are not all of one article of the activity."""
    variations = set()
    for segment in segments:
        if (step := steps.get(segment.step)) is None:
            raise ValueError(f"has step {segment.step}, which {TAXONOMY} does not list")
        if step.activity != activity:
            raise ValueError(f"is of {activity!r}, and has step {step.id} of {step.activity!r}")
        variations.add(step.variation)
    if len(variations) > 1:
        raise ValueError(f"has steps of several variations, {', '.join(sorted(variations))}")


def candidates(file: Path, steps: Mapping[int, Step], split_of: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
    """Return the candidate steps of each video in the file, in the article's order.

    Those of which the taxonomy has no text are left out. steps and split_of: as of ``annotations``. Raises ReleaseError
    that names the video where it is not known, or its candidates are no ids, of two activities, or one stands twice.
    """
    found: dict[str, tuple[int, ...]] = {}
    for video, ids in _records(file).items():
        try:
            _check_known(video, split_of)
            if type(ids) is not list or not all(type(each) is int and 0 <= each <= LAST_STEP for each in ids):
                raise ValueError(f"has candidates that are no list of ids from 0 to {LAST_STEP}")
            if len({*ids}) < len(ids):
                raise ValueError("has a candidate twice")
            known = sorted(steps.keys() & ids)
            if len(of := {steps[each].activity for each in known}) > 1:
                raise ValueError(f"has candidates of several activities, {', '.join(sorted(of))}")
        except ValueError as error:
            raise _of_video(file, video, error) from None
        found[video] = tuple(known)
    return found


def summary(file: Path) -> tuple[frozenset[str], bool]:
    """Return the splits of which the annotation has segments, and whether a record is ``made``.

    No more is checked than what is returned; raises ReleaseError that names the video where that is of another form.
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
        raise _other_form(file, "it is no JSON object")
    return content


def _of_video(file: Path, video: str, error: Exception) -> ReleaseError:
    reason = str(error) if type(error) is ValueError else f"is not in HT-Step's form: {type(error).__name__}: {error}"
    return ReleaseError(" ".join(f"{file}: {video} {reason}".split()))


def _other_form(file: Path, reason: str) -> ReleaseError:
    return ReleaseError(" ".join(f"{file} is not in HT-Step's form: {reason}".split()))

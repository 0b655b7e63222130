"""The votes of annotators on each clip, and the resulting label (Spacewalk-18, Sec. 3.1)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from stepline.datasets.annotation.clips import Clips
from stepline.datasets.folder import named
from stepline.datasets.lines import lines
from stepline.errors import ConfigError

Votes = dict[str, dict[int, dict[str, int | None]]]
"""Votes by video, clip and annotator: 0 for Irrelevant, 1..K for a step, None for unsure."""
UNAVAILABLE = -1
"""The label of a clip without votes."""
SAME_S = 0.1
"""The tolerance for times of clips, which a spreadsheet may round."""


def read_votes(files: Iterable[Path], clips: Clips, n_steps: Mapping[str, int]) -> Votes:
    """Return the votes of annotators; a line without a label is a clip that is not labelled yet.

    files: CSV with video, clip, annotator and label: 1..K, 0 or ``irrelevant``, ``unsure``. The optional columns
    start_s and end_s must equal the clip's times. n_steps: K, for each video that can be labelled.
    Raises ConfigError with file and line.
    """
    found: Votes = {}
    first: dict[tuple[str, int, str], str] = {}
    columns = ("video", "clip", "annotator", "label")
    for file in files:
        for number, line in lines("--labels", str(file), required=columns, optional=("segment", "start_s", "end_s")):
            where, name = f"{file}, line {number}", line["video"]
            video = named(name, n_steps)
            if video is None:
                raise ConfigError(f"{where}: {name!r} is not one of the annotated videos: {', '.join(n_steps)}")
            clip = _clip(where, video, line, clips[video])
            if not line["label"]:
                continue
            annotator = line["annotator"]
            if not annotator:
                raise ConfigError(f"{where}: the annotator is empty")
            if (key := (video, clip, annotator)) in first:
                raise ConfigError(f"{where}: {annotator} has already labelled clip {clip} of {video} in {first[key]}")
            first[key] = where
            vote = _label(where, line["label"], n_steps[video])
            found.setdefault(video, {}).setdefault(clip, {})[annotator] = vote
    return found


def _clip(where: str, video: str, line: dict[str, str], clips: dict[int, tuple[float, float]]) -> int:
    given = line["clip"]
    if not given.isdecimal() or int(given) not in clips:
        raise ConfigError(f"{where}: {video} has no clip {given!r}; its {len(clips)} are {min(clips)} to {max(clips)}")
    for column, known_s in zip(("start_s", "end_s"), clips[int(given)], strict=True):
        try:
            same = not line.get(column) or abs(float(line[column]) - known_s) <= SAME_S
        except ValueError:
            same = False
        if not same:
            raise ConfigError(
                f"{where}: {column} of clip {given} of {video} is {known_s:g}, not {line[column]}: "
                "this label belongs to another list of clips"
            )
    return int(given)


def _label(where: str, text: str, n_steps: int) -> int | None:
    if text.lower() == "unsure":
        return None
    if text.lower() == "irrelevant":
        return 0
    if not text.isdecimal() or int(text) > n_steps:
        raise ConfigError(f"{where}: label {text!r} must be 1 to {n_steps}, 0 or irrelevant, or unsure")
    return int(text)


def majority(votes: Sequence[Iterable[int]]) -> list[int]:
    """Return the label of each clip of a recording, by majority; -1 without votes.

    votes: for each clip in temporal order, without unsure votes. A tie is broken by the label of the nearest previous
    labelled clip, if it is among the tied labels, because neighbouring clips often belong to the same step; then by the
    label of the nearest later clip without a tie; then by the lowest step, with Irrelevant last.
    """
    chosen = [_most(each) for each in votes]
    after: list[int] = []
    following = UNAVAILABLE
    for most in reversed(chosen):
        after.append(following)
        following = most[0] if len(most) == 1 else following
    labels: list[int] = []
    before = UNAVAILABLE
    for most, following in zip(chosen, reversed(after), strict=True):
        near = [label for label in (before, following) if label in most]
        labels.append((near or most or [UNAVAILABLE])[0])
        before = labels[-1] if most else before
    return labels


def _most(votes: Iterable[int]) -> list[int]:
    counts = Counter(votes)
    most = [label for label, count in counts.items() if count == max(counts.values())]
    return sorted(most, key=lambda label: (label == 0, label))

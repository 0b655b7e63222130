"""Predictions in the form of HT-Step's challenge: a CSV file for its released evaluation and its server."""

import csv
import math
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, SupportsFloat, SupportsInt

from stepline.errors import ConfigError
from stepline.io import csv_text, write_text

COLUMNS = ("video-id", "t-start", "t-end", "label", "score")
INDEX = ("", "Unnamed: 0")
"""Names of the first column, a row number that is not read."""

Row = tuple[str, float, float, int, float]


class Submission(NamedTuple):
    """N predicted segments, in the order of the file.

    video: (N,) ids. start_s, end_s: (N,) seconds. step: (N,) values of ``global_step_index``. score: (N,).
    """

    video: list[str]
    start_s: list[float]
    end_s: list[float]
    step: list[int]
    score: list[float]


def write_submission(
    path: Path | str,
    video: Iterable[str],
    start_s: Iterable[SupportsFloat],
    end_s: Iterable[SupportsFloat],
    step: Iterable[SupportsInt],
    score: Iterable[SupportsFloat],
) -> None:
    """Write N predicted segments to ``path``, one row each, numbered from 0, without loss of precision.

    The columns are those of `Submission`. Raises ConfigError with the row if a segment does not end after it starts or
    a number is not finite, and ValueError if columns differ in length. In these cases nothing is written.
    """
    numbers = map(float, start_s), map(float, end_s), map(float, score)
    rows = []
    for row, (name, label, start, end, certain) in enumerate(zip(video, map(int, step), *numbers, strict=True)):
        _check(f"{path}, row {row}", start, end, certain)
        rows.append((row, name, start, end, label, certain))
    write_text(path, csv_text(("", *COLUMNS), rows))


def read_submission(path: Path | str, videos: Collection[str], steps: Collection[int]) -> Submission:
    """Return the predictions in ``path``, in its order.

    videos: the ids of the split. steps: the known labels; the released example has some labels that are not in the
    released taxonomy. Raises ConfigError with the row, counted from 0 below the header, if the columns are not those of
    the challenge, a video or label is unknown, a segment does not end after it starts, or a number is not finite.
    """
    known = frozenset(videos)
    found: list[Row] = []
    try:
        with open(path, encoding="utf-8", newline="") as file:
            rows = csv.reader(file, strict=True)
            index, *columns = next(rows, None) or [""]
            if index not in INDEX or tuple(columns) != COLUMNS:
                raise ConfigError(f"{path}: the first line must be {','.join(('', *COLUMNS))!r}")
            for row, fields in enumerate(rows):
                found.append(_row(f"{path}, row {row}", fields, known, steps))
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ConfigError(f"{path} is not a CSV file in UTF-8: {error}") from None
    if not found:
        return Submission([], [], [], [], [])
    video, start_s, end_s, step, score = map(list, zip(*found, strict=True))
    return Submission(video, start_s, end_s, step, score)


def _row(where: str, fields: Sequence[str], videos: Collection[str], steps: Collection[int]) -> Row:
    if len(fields) != 1 + len(COLUMNS):
        raise ConfigError(f"{where}: there are {len(fields)} fields, not {1 + len(COLUMNS)}")
    _, video, start, end, label, score = fields
    if video not in videos:
        raise ConfigError(f"{where}: {video!r} is not a video of the split")
    try:
        start_s, end_s, certain = float(start), float(end), float(score)
        step = int(label) if label.isascii() and label.isdecimal() else -1
    except ValueError:
        raise ConfigError(f"{where}: {start!r}, {end!r}, {score!r} are not three numbers") from None
    _check(where, start_s, end_s, certain)
    if step not in steps:
        raise ConfigError(f"{where}: the label {label!r} is not the number of a step")
    return video, start_s, end_s, step, certain


def _check(where: str, start_s: float, end_s: float, score: float) -> None:
    if not -math.inf < start_s < end_s < math.inf:
        raise ConfigError(f"{where}: the segment from {start_s} s to {end_s} s does not end after it starts")
    if not math.isfinite(score):
        raise ConfigError(f"{where}: the score {score} is not finite")

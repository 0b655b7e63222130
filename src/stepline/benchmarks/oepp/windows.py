"""Windows of actions to plan, from the steps of a video, and the rows of features at their start and goal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor
from typing import Literal

from stepline.datasets.oepp import EventVideo, Step

ROWS = 3
"""The number of rows in an observation, one per second."""
NO_ROW = -1
"""The index that represents a vector of zeros."""
Padding = Literal["repeat_first", "drop"]
Rule = Literal["released", "within"]


@dataclass(frozen=True, kw_only=True)
class Window:
    """Consecutive actions of a video.

    index: of the first action in the video. start, end: the observed steps. padded: whether the first action is
    repeated.
    """

    video: str
    index: int
    actions: tuple[str, ...]
    start: Step
    end: Step
    padded: bool


def windows(videos: Sequence[EventVideo], horizon: int | None, padding: Padding) -> list[Window]:
    """Return the windows of ``horizon`` actions at stride 1, video by video; with None, one window per whole video.

    A video with fewer actions has one window with its first action repeated in front (``repeat_first``, as in the
    released code), or none (``drop``).
    """
    return [window for video in videos for window in _windows(video, horizon, padding)]


def _windows(video: EventVideo, horizon: int | None, padding: Padding) -> Iterator[Window]:
    steps = video.steps
    horizon = len(steps) if horizon is None else horizon
    lacking = max(0, horizon - len(steps))
    if lacking and padding == "drop":
        return
    for index in range(max(1, len(steps) - horizon + 1)):
        seen = steps[index : index + horizon]
        yield Window(
            video=video.id,
            index=index,
            actions=(seen[0].action,) * lacking + tuple(step.action for step in seen),
            start=seen[0],
            end=seen[-1],
            padded=lacking > 0,
        )


def observation_rows(start: Step, end: Step, n_rows: int, rule: Rule) -> tuple[int, ...]:
    """Return the three rows of the start and the three rows of the goal, among ``n_rows`` rows, one per second.

    ``released``: the rows from the second in which ``start`` begins, and the rows up to the second in which ``end``
    ends or up to the last row. They can be outside the steps; -1 represents a row outside the features, a vector of
    zeros.
    ``within``: the first rows of ``start`` and the last rows of ``end``. A step has the rows of the seconds that it
    touches, at least one; with fewer than three, the last row of ``start`` or the first row of ``end`` is repeated.
    Raises ValueError if a step begins after the last row.
    """
    if rule == "released":
        first, last = int(start.start_s), min(int(end.end_s), n_rows - 1)
        rows = (*range(first, first + ROWS), *range(last - ROWS + 1, last + 1))
        return tuple(row if 0 <= row < n_rows else NO_ROW for row in rows)
    first, edge = _rows(start, n_rows)
    other_edge, last = _rows(end, n_rows)
    return (
        *(min(row, edge) for row in range(first, first + ROWS)),
        *(max(row, other_edge) for row in range(last - ROWS + 1, last + 1)),
    )


def _rows(step: Step, n_rows: int) -> tuple[int, int]:
    """Return the first and the last row of a step."""
    first = floor(step.start_s)
    if first >= n_rows:
        raise ValueError(f"{step.action!r} begins at {step.start_s:g} s, after the last of {n_rows} rows")
    return first, min(max(first, ceil(step.end_s) - 1), n_rows - 1)

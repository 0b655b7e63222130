"""Inputs and targets of HiREST's joint model in frames: one frame per second, frame k at second k."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stepline.models.hirest_joint_config import JointConfig


class Interval(NamedTuple):
    """A training sample of segmentation: the end of a step, given the boundaries before it.

    previous: the boundaries before the end. start, last: the range of candidate frames. target: the end.
    """

    previous: tuple[int, ...]
    start: int
    last: int
    target: int


def frame_of(time_s: float, frames: int) -> int:
    """Return the first frame at or after a time, or the last frame."""
    return min(max(math.ceil(time_s), 0), frames - 1)


def speech_rows(spans_s: Sequence[tuple[float, float]], frames: int) -> NDArray[np.int64]:
    """Return the index of the subtitle in each second, (frames,), -1 for none.

    A subtitle covers the whole seconds from that of its start to the one before that of its end, so a subtitle within
    one second covers none. If subtitles overlap, the last one in the order of the file counts.
    """
    rows = np.full(frames, -1)
    for number, (start_s, end_s) in enumerate(spans_s):
        rows[int(start_s) : int(end_s)] = number
    return rows


def boundaries(steps_s: Sequence[tuple[float, float]], frames: int) -> list[int]:
    """Return the frames of all distinct starts and ends of steps, in order. Different times may share a frame."""
    return [frame_of(time_s, frames) for time_s in sorted({time_s for step in steps_s for time_s in step})]


def intervals(bounds: Sequence[int], last: int) -> list[Interval]:
    """Return the training samples of a video's segmentation, given its boundaries and the moment's last frame.

    As in the release, a video with at most two boundaries has none.
    """
    if len(bounds) <= 2:
        return []
    return [
        Interval(tuple(bounds[: place + 1]), bounds[place], last, bounds[place + 1]) for place in range(len(bounds) - 1)
    ]


def slot_frames(steps: Tensor, config: JointConfig) -> Tensor:
    """Return the (N, slots) frames from which captions are generated, for (N, 2) first and last frames of steps.

    If a step has n frames, at most as many as slots, frame j fills the slots from slots j / n up to slots (j + 1) / n,
    both rounded down. If it has more, ``caption_frames`` selects them. A step that ends before it starts is reduced to
    its last frame.
    """
    last = steps[:, 1:]
    first = steps[:, :1].minimum(last)
    n, slot = last - first + 1, torch.arange(config.slots, device=steps.device)
    many = slot * (n - 1) // max(1, config.slots - 1) if config.caption_frames == "uniform" else slot
    return first + torch.where(n > config.slots, many, ((slot + 1) * n - 1) // config.slots)

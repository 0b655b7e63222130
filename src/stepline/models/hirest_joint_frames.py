"""From seconds to what HiREST's joint model sees and learns: frames, one a second, frame k at second k."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from stepline.models.hirest_joint_config import JointConfig


class Interval(NamedTuple):
    """What is learned of one step: its end, given what comes before it.

    previous: the boundaries before its end. start, last: of the frames that are looked at, of which target is one.
    """

    previous: tuple[int, ...]
    start: int
    last: int
    target: int


def frame_of(time_s: float, frames: int) -> int:
    """Return the first frame that is not before a time, the last one where there is none."""
    return min(max(math.ceil(time_s), 0), frames - 1)


def speech_rows(spans_s: Sequence[tuple[float, float]], frames: int) -> NDArray[np.int64]:
    """Return the subtitle of each second, (frames,), -1 where there is none.

    A subtitle is in the whole seconds from that of its start to that before its end's, so that one within a second is
    in none. Where several are, it is the one given last: subtitles are given as the file has them.
    """
    rows = np.full(frames, -1)
    for number, (start_s, end_s) in enumerate(spans_s):
        rows[int(start_s) : int(end_s)] = number
    return rows


def boundaries(steps_s: Sequence[tuple[float, float]], frames: int) -> list[int]:
    """Return the frames of all distinct starts and ends of steps, in order; different times may have one frame."""
    return [frame_of(time_s, frames) for time_s in sorted({time_s for step in steps_s for time_s in step})]


def intervals(bounds: Sequence[int], last: int) -> list[Interval]:
    """Return what is learned of a video's segmentation, given its boundaries and the moment's last frame.

    A video with two boundaries or less is left out, as released.
    """
    if len(bounds) <= 2:
        return []
    return [
        Interval(tuple(bounds[: place + 1]), bounds[place], last, bounds[place + 1]) for place in range(len(bounds) - 1)
    ]


def slot_frames(steps: Tensor, config: JointConfig) -> Tensor:
    """Return the (N, slots) frames that captions see of (N, 2) first and last frames of steps.

    Of n frames, at most as many as slots, frame j fills the slots from slots j / n to before slots (j + 1) / n, both
    rounded down. Of more, ``caption_frames`` says which are seen. A step that ends before it begins is its last frame.
    """
    last = steps[:, 1:]
    first = steps[:, :1].minimum(last)
    n, slot = last - first + 1, torch.arange(config.slots, device=steps.device)
    many = slot * (n - 1) // max(1, config.slots - 1) if config.caption_frames == "uniform" else slot
    return first + torch.where(n > config.slots, many, ((slot + 1) * n - 1) // config.slots)

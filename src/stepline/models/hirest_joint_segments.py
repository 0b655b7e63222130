"""Segmentation in HiREST's joint model: steps are grown one at a time, then boundaries are selected.

This follows the release, including its side effects. A step is one frame wider on each side than the frames above the
threshold, so it may start one frame before the moment and end one frame after it. A step that starts at frame 0 is
rejected, and the video gets no further steps. The last boundary is always dropped.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Grown(NamedTuple):
    """The next step of each of B videos: (B,) frames of its peak and of both ends, and whether it is accepted."""

    peak: Tensor
    left: Tensor
    right: Tensor
    taken: Tensor


def masked(logits: Tensor, inside: Tensor) -> Tensor:
    """Return the (B, T) logits of boundaries, with a very low value for frames that are not ``inside``."""
    return logits.masked_fill(~inside, -torch.finfo(logits.dtype).max)


def grow(logits: Tensor, inside: Tensor, last: Tensor, threshold: float) -> Grown:
    """Return the next steps, given (B, T) logits, the remaining frames, and the (B,) last frames that can be ends.

    An end is the first frame, going outwards from the peak, with at most ``threshold`` times the peak's score, or the
    first or last frame. If no frame remains, all scores are equal and frame 0 is the peak, so no step is accepted.
    """
    scores = masked(logits, inside).softmax(dim=1)
    peak = scores.argmax(dim=1, keepdim=True)
    low = scores.double() / scores.gather(1, peak).double() <= threshold
    frame = torch.arange(logits.shape[1], device=logits.device)
    left = torch.where(low & (frame <= peak), frame, 0).amax(dim=1)
    right = torch.where(low & (frame >= peak), frame, last[:, None]).amin(dim=1).minimum(last)
    return Grown(peak[:, 0], left, right, (left > 0) & (right > 0))


def between(first: Tensor, last: Tensor, frames: int) -> Tensor:
    """Return the mask of the frames from ``first`` to ``last``, both (B,), with shape (B, frames)."""
    frame = torch.arange(frames, device=first.device)
    return (first[:, None] <= frame) & (frame <= last[:, None])


def kept(ends: Tensor, moments: Tensor, gap: int) -> list[list[int]]:
    """Return the boundaries of each video, in frames, ascending.

    ends: (B, T), whether a frame is an end of a step or the first frame of the moment. moments: (B, 2) first and last
    frames; if a moment ends before it starts, boundaries after its end are dropped. The first boundary is kept, then
    each that is at least ``gap`` frames after the previously kept one, but never the last boundary.
    """
    found = []
    for marked, (start, end) in zip(ends, moments.tolist(), strict=True):
        frames = sorted({*marked.nonzero()[:, 0].tolist(), end})
        if start > end:
            frames = [frame for frame in frames if frame <= end]
        stay = frames[:1]
        for frame in frames[1:-1]:
            if frame - stay[-1] >= gap:
                stay.append(frame)
        found.append(stay)
    return found

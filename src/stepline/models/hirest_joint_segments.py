"""How HiREST's joint model grows the steps of a moment, one after the other, and which boundaries stay.

As the release does it, with what follows from that: a step is one frame wider on each side than the frames above the
threshold, so it may begin a frame before the moment and end a frame after it; one that begins at frame 0 is not taken,
so the video gets no more steps; and the last of all boundaries is left out.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Grown(NamedTuple):
    """The next step of each of B videos: (B,) frames of the highest score and of both ends, and whether it is taken."""

    peak: Tensor
    left: Tensor
    right: Tensor
    taken: Tensor


def masked(logits: Tensor, inside: Tensor) -> Tensor:
    """Return the (B, T) logits of boundaries, out of reach where a frame is not ``inside``."""
    return logits.masked_fill(~inside, -torch.finfo(logits.dtype).max)


def grow(logits: Tensor, inside: Tensor, last: Tensor, threshold: float) -> Grown:
    """Return the next steps, given (B, T) logits, the frames that are left, and (B,) last frames that can be ends.

    An end is the first frame, going out from the highest score, whose part of it is not more than the threshold, or
    the first or last that there is. Where no frame is left, all scores are equal and frame 0 is the highest: no step
    is taken.
    """
    scores = masked(logits, inside).softmax(dim=1)
    peak = scores.argmax(dim=1, keepdim=True)
    low = scores.double() / scores.gather(1, peak).double() <= threshold
    frame = torch.arange(logits.shape[1], device=logits.device)
    left = torch.where(low & (frame <= peak), frame, 0).amax(dim=1)
    right = torch.where(low & (frame >= peak), frame, last[:, None]).amin(dim=1).minimum(last)
    return Grown(peak[:, 0], left, right, (left > 0) & (right > 0))


def between(first: Tensor, last: Tensor, frames: int) -> Tensor:
    """Return (B, frames) whether a frame is one of ``first`` to ``last``, both (B,)."""
    frame = torch.arange(frames, device=first.device)
    return (first[:, None] <= frame) & (frame <= last[:, None])


def kept(ends: Tensor, moments: Tensor, gap: int) -> list[list[int]]:
    """Return the boundaries of each video, in frames, ascending.

    ends: (B, T), whether a frame is an end of a step or the moment's first. moments: (B, 2) first and last frames; of
    one that ends before it begins, what follows its end is left out. The first boundary stays, then each that is at
    least ``gap`` frames after the last that stayed, but never the last of all.
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

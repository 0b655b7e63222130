"""Training targets of ActionFormer's points, and the losses."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from stepline.models.actionformer import Said
from stepline.models.actionformer_config import ActionFormerConfig

ALPHA, GAMMA = 0.25, 2.0
"""The parameters of the focal loss."""
MOMENTUM = 0.9
"""The momentum of the normaliser."""
SAME = 1e-3
"""A point is also trained on segments that are at most this many rows longer than its shortest one."""
LEAST = 0.01
"""The minimum offset loss used to balance ``loss_weight``."""
EPSILON = 1e-8
"""The minimum length used as a divisor."""


class Targets(NamedTuple):
    """The targets of P points of B videos.

    marks: (M, 3), the video, point and step of every positive label, each once. offsets: (B, P, 2), distances to the
    start and end of the point's segment, in strides; defined only for ``positive`` points, (B, P).
    """

    marks: Tensor
    offsets: Tensor
    positive: Tensor


class Losses(NamedTuple):
    """The loss of the steps, the loss of the offsets, and the total loss."""

    steps: Tensor
    offsets: Tensor
    total: Tensor


def targets(config: ActionFormerConfig, points: Tensor, segments: Sequence[Tensor], steps: Sequence[Tensor]) -> Targets:
    """Return the targets of the (P, 4) points of ``actionformer.points`` for the segments of each video.

    segments: (n, 2) in rows. steps: (n,) indices into the predicted steps. A point is trained on a segment if it is
    inside the segment, close enough to its centre, and if the distance to the farther end is in the point's range,
    inclusive. If there are several, the offsets are those of the shortest, the first among equals, and the labels are
    the steps of all segments of that length.
    """
    count = torch.tensor([len(each) for each in segments], device=points.device)
    bounds = torch.nn.utils.rnn.pad_sequence([*segments], batch_first=True).to(points.device)
    labels = torch.nn.utils.rnn.pad_sequence([*steps], batch_first=True).to(points.device)
    if not bounds.shape[1]:
        empty = points.new_zeros(len(count), len(points), 2)
        return Targets(labels.new_zeros(0, 3), empty, empty[..., 0] > 0)
    real = torch.arange(bounds.shape[1], device=points.device) < count[:, None]
    place, least, greatest, stride = points.T[:, None, :, None]
    start, end = bounds[:, None].unbind(3)
    reach = torch.stack((place - start, end - place), dim=3)
    inside = reach.amin(dim=3) > 0
    if config.centre_radius is not None:
        centre, radius = 0.5 * (start + end), stride * config.centre_radius
        first, last = torch.maximum(centre - radius, start), torch.minimum(centre + radius, end)
        inside = torch.minimum(place - first, last - place) > 0
    far = reach.amax(dim=3)
    learned = real[:, None] & inside & (far >= least) & (far <= greatest)
    length = torch.where(learned, end - start, torch.inf)
    shortest, which = length.min(dim=2)
    video, point, number = (learned & (length <= shortest[..., None] + SAME)).nonzero(as_tuple=True)
    marks = torch.unique(torch.stack((video, point, labels[video, number]), dim=1), dim=0)
    offsets = reach.gather(2, which[..., None, None].expand(-1, -1, 1, 2))[:, :, 0] / stride[0]
    return Targets(marks, offsets, learned.any(dim=2))


def losses(
    config: ActionFormerConfig, said: Said, learned: Targets, normaliser: Tensor, asked: Tensor | None = None
) -> Losses:
    """Return the losses of a batch, divided by the normaliser, which is first updated in place, as in the release.

    normaliser: a float64, the running mean of the number of positive points, initially ``init_norm``. asked: (B, S),
    the steps to predict for each video; None for all.
    """
    positive = learned.positive & said.there
    normaliser.mul_(MOMENTUM).add_((1 - MOMENTUM) * max(int(positive.sum()), 1))
    norm = float(normaliser)
    none, one = config.smoothing / (said.logits.shape[2] + 1), 1 - config.smoothing
    video, point, step = learned.marks[said.there[learned.marks[:, 0], learned.marks[:, 1]]].unbind(1)
    marked = said.logits[video, point, step]
    counted = said.there[..., None] if asked is None else said.there[..., None] & asked[:, None]
    of_steps = (focal(said.logits, none) * counted).sum() + (focal(marked, one + none) - focal(marked, none)).sum()
    of_steps = of_steps / norm
    of_offsets = diou(said.offsets[positive], learned.offsets[positive]).sum() / norm
    weight = config.loss_weight
    if weight <= 0:
        weight = of_steps.item() / max(of_offsets.item(), LEAST)
    return Losses(of_steps, of_offsets, of_steps + weight * of_offsets)


def focal(logits: Tensor, target: float) -> Tensor:
    """Return the focal loss of each logit for a target in [0, 1] (Lin et al., ICCV 2017)."""
    score = logits.sigmoid()
    entropy = functional.softplus(logits) - target * logits
    right = score * target + (1 - score) * (1 - target)
    loss: Tensor = (ALPHA * target + (1 - ALPHA) * (1 - target)) * entropy * (1 - right) ** GAMMA
    return loss


def diou(found: Tensor, true: Tensor) -> Tensor:
    """Return 1 - IoU + (centre distance / length of the hull)^2 for segments around a point (Zheng et al., AAAI 2020).

    found, true: (N, 2) distances to the start and end, at least 0.
    """
    shared = torch.minimum(found, true).sum(dim=1)
    union = found.sum(dim=1) + true.sum(dim=1) - shared
    hull = torch.maximum(found, true).sum(dim=1)
    apart = 0.5 * (found[:, 1] - found[:, 0] - true[:, 1] + true[:, 0])
    return 1 - shared / union.clamp(min=EPSILON) + (apart / hull.clamp(min=EPSILON)).square()

"""What PDVC is trained by, of one decoder layer: a matching of true segments with queries, and the losses of that.

Wang et al., ICCV 2021, Sec. 3.4; the matchers by Batra et al. (arXiv 2209.15501, Sec. 4). Q queries, n true segments;
boxes are (centre, length), segments (start, end), both in fractions of the video.
"""

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from stepline.models.matching import hungarian, ordered, soft_ordered, temporal_order

if TYPE_CHECKING:
    from stepline.models.pdvc import PdvcConfig

SIGMA = 2.0
"""Of the Gaussian that makes the counter's mistakes by few segments cheap."""


class Predicted(NamedTuple):
    """What a decoder layer says: (Q,) logits that a query is a segment, (Q, 2) boxes, logits of 0..most segments."""

    logits: Tensor
    boxes: Tensor
    counts: Tensor


def as_segments(boxes: Tensor) -> Tensor:
    """Return the (..., 2) starts and ends of centres and lengths."""
    centre, length = boxes.unbind(-1)
    return torch.stack((centre - length / 2, centre + length / 2), dim=-1)


def as_boxes(segments: Tensor) -> Tensor:
    """Return the (..., 2) centres and lengths of starts and ends."""
    start, end = segments.unbind(-1)
    return torch.stack(((start + end) / 2, end - start), dim=-1)


def overlaps(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Return IoU and generalised IoU of (..., 2) segments, whose leading dimensions are broadcast.

    1e-5 stands beside each denominator, as in the release.
    """
    (start, end), (other_start, other_end) = first.unbind(-1), second.unbind(-1)
    inside = (torch.minimum(end, other_end) - torch.maximum(start, other_start)).clamp(min=0)
    union = end - start + other_end - other_start - inside
    hull = torch.maximum(end, other_end) - torch.minimum(start, other_start)
    iou = inside / (union + 1e-5)
    return iou, iou - (hull - union) / (hull + 1e-5)


def focal_terms(logits: Tensor, alpha: float, gamma: float) -> tuple[Tensor, Tensor]:
    """Return the focal losses (Lin et al., ICCV 2017) of logits were they of segments, and were they not."""
    of_segment = alpha * (-logits).sigmoid() ** gamma * functional.softplus(-logits)
    of_other = (1 - alpha) * logits.sigmoid() ** gamma * functional.softplus(logits)
    return of_segment, of_other


def matching_costs(config: "PdvcConfig", predicted: Predicted, segments: Tensor) -> Tensor:
    """Return the (n, Q) costs of matching true segments with queries, as ``config.cost`` says."""
    iou, generalised = overlaps(segments[:, None], as_segments(predicted.boxes))
    if config.cost == "iou":
        return -iou
    of_segment, of_other = focal_terms(predicted.logits, config.focal_alpha, config.focal_gamma)
    return config.cost_score * (of_segment - of_other) - config.cost_giou * generalised


def match(config: "PdvcConfig", predicted: Predicted, segments: Tensor) -> tuple[Tensor, Tensor]:
    """Return the (n,) query of each of the true segments, which are in temporal order, and the table's smooth end / n.

    With an ordered matcher, queries are put in the temporal order of their boxes first. The end, which has a gradient,
    is 0 with other matchers than ``soft_soda``; the queries are those of the least cost, not of a smooth one.
    """
    costs = matching_costs(config, predicted, segments)
    if config.matcher == "hungarian":
        return hungarian(costs)[1], costs.new_zeros(())
    order = temporal_order(as_segments(predicted.boxes.detach()))
    costs = costs[:, order]
    chosen = order[ordered(costs, complete=True)[1]]
    if config.matcher == "soda":
        return chosen, costs.new_zeros(())
    return chosen, soft_ordered(costs[None], gamma=config.gamma)[0] / len(segments)


def counter_loss(counts: Tensor, n: int) -> Tensor:
    """Return the counter's loss, given its (most + 1,) logits and that there are n segments; above most, n is most.

    A mean of binary cross entropies, those of wrong numbers by 1 - exp(-(number - n)^2 / 8). The release weights
    them by how rare a number is in ActivityNet Captions as well, with these frequencies in its code; that is left out.
    """
    number = torch.arange(len(counts), device=counts.device)
    n = min(n, len(counts) - 1)
    weight = torch.where(number == n, 1, 1 - torch.exp(-((number - n) ** 2) / (2 * SIGMA**2)))
    return functional.binary_cross_entropy_with_logits(counts, (number == n).to(counts), weight=weight)


def segment_losses(
    config: "PdvcConfig", predicted: Predicted, segments: Tensor, chosen: Tensor, end: Tensor
) -> dict[str, Tensor]:
    """Return the weighted losses of a layer but for captions, given what ``match`` found.

    score: the focal loss of all queries, per true segment. giou: 1 - generalised IoU of matched pairs. count: see
    ``counter_loss``. soft: the smooth table's end per true segment, with ``soft_soda`` alone.
    """
    of_segment, of_other = focal_terms(predicted.logits, config.focal_alpha, config.focal_gamma)
    matched = torch.zeros_like(predicted.logits, dtype=torch.bool)
    matched[chosen] = True
    _, generalised = overlaps(as_segments(predicted.boxes[chosen]), segments)
    losses = {
        "score": config.score_weight * torch.where(matched, of_segment, of_other).sum() / len(segments),
        "giou": config.giou_weight * (1 - generalised).mean(),
        "count": config.count_weight * counter_loss(predicted.counts, len(segments)),
    }
    return losses | ({"soft": config.soft_weight * end} if config.matcher == "soft_soda" else {})

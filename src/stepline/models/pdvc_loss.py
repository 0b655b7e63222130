"""What PDVC is trained by, of one decoder layer: a matching of true segments with queries, and the losses of that.

Wang et al., ICCV 2021, Sec. 3.4; the matchers by Batra et al. (arXiv 2209.15501, Sec. 4). B videos with Q queries each
and n true segments, N in all; boxes are (centre, length), segments (start, end), both in fractions of the video.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from stepline.models.matching import hungarian, ordered, soft_ordered, temporal_order
from stepline.models.pdvc_config import PdvcConfig

SIGMA = 2.0
"""Of the Gaussian that makes the counter's mistakes by few segments cheap."""
ACTIVITYNET = [0, 0, 1936, 4125, 1891, 782, 510, 313, 185, 84, 66, 45, 22, 18, 6, 5, 5, 2, 3, 4, 3, 0, 2, 0, 0, 0, 1, 1]
"""How many of ActivityNet Captions' 10,009 training videos have 0, 1, 2, ... segments."""


class Predicted(NamedTuple):
    """What a decoder layer says of each video.

    logits: (B, Q), that a query is a segment. boxes: (B, Q, 2). counts: (B, most + 1) logits of 0..most segments.
    """

    logits: Tensor
    boxes: Tensor
    counts: Tensor


class Matched(NamedTuple):
    """The pairs of a layer, and what is smoothed of its costs.

    video, query: (N,) each. tables: (n, Q) costs of each video, queries in temporal order; of ``soft_soda`` alone.
    """

    video: Tensor
    query: Tensor
    tables: Sequence[Tensor]


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


def matching_costs(config: PdvcConfig, logits: Tensor, boxes: Tensor, segments: Tensor) -> Tensor:
    """Return the (n, Q) costs of matching a video's true segments with its queries, as ``config.cost`` says."""
    iou, generalised = overlaps(segments[:, None], as_segments(boxes))
    if config.cost == "iou":
        return -iou
    of_segment, of_other = focal_terms(logits, config.focal_alpha, config.focal_gamma)
    return config.cost_score * (of_segment - of_other) - config.cost_giou * generalised


def match(config: PdvcConfig, predicted: Predicted, segments: Sequence[Tensor]) -> Matched:
    """Return the query of each true segment, in the order of the segments, (n, 2) of each video: its own, if given.

    With an ordered matcher, queries are put in the temporal order of their boxes first; the segments must be in it. The
    queries are those of the least cost, with ``soft_soda`` too.
    """
    queries, tables = [], []
    for logits, boxes, true in zip(predicted.logits, predicted.boxes, segments, strict=True):
        if config.proposals == "ground_truth":
            queries.append(torch.arange(len(true), device=true.device))
            continue
        costs = matching_costs(config, logits, boxes, true)
        if config.matcher == "hungarian":
            queries.append(hungarian(costs)[1])
            continue
        order = temporal_order(as_segments(boxes.detach()))
        costs = costs[:, order]
        queries.append(order[ordered(costs, complete=True)[1]])
        tables += [costs] if config.matcher == "soft_soda" else []
    return Matched(videos_of(segments), torch.cat(queries), tables)


def videos_of(segments: Sequence[Tensor]) -> Tensor:
    """Return the (N,) video of each of the (n, 2) segments of B videos."""
    sizes = torch.tensor([len(each) for each in segments], device=segments[0].device)
    return torch.arange(len(segments), device=sizes.device).repeat_interleave(sizes)


def counter_loss(config: PdvcConfig, counts: Tensor, n: Tensor) -> Tensor:
    """Return the counter's loss, given (B, most + 1) logits and that there are (B,) n segments; above most, n is most.

    The mean of binary cross entropies, those of wrong numbers by 1 - exp(-(number - n)^2 / 8), and with the weights
    ``activitynet``, as released, each by 1 - the number's share among ActivityNet Captions' training videos.
    """
    number = torch.arange(counts.shape[1], device=counts.device)
    n = n.clamp(max=counts.shape[1] - 1)[:, None]
    weight = torch.where(number == n, 1, 1 - torch.exp(-((number - n) ** 2) / (2 * SIGMA**2)))
    if config.count_weights == "activitynet":
        videos = counts.new_tensor(ACTIVITYNET[: counts.shape[1]])
        share = functional.pad(videos / sum(ACTIVITYNET), (0, counts.shape[1] - len(videos)))
        weight = weight * (1 - share)
    return functional.binary_cross_entropy_with_logits(counts, (number == n).to(counts), weight=weight)


def soft_losses(config: PdvcConfig, layers: Sequence[Matched]) -> Tensor:
    """Return SoftSODA's (layers,) losses: the smooth tables' ends, per true segment of the batch.

    The tables of all layers and videos are smoothed at once: it takes a few hundred steps, whatever their number.
    """
    tables = [table for each in layers for table in each.tables]
    rows = torch.tensor([len(table) for table in tables], device=tables[0].device)
    most = max(map(len, tables))
    stacked = torch.stack([functional.pad(table, (0, 0, 0, most - len(table))) for table in tables])
    ends = soft_ordered(stacked, gamma=config.gamma, rows=rows)
    return ends.view(len(layers), -1).sum(dim=1) / len(layers[0].query)


def segment_losses(
    config: PdvcConfig, predicted: Predicted, segments: Sequence[Tensor], matched: Matched
) -> dict[str, Tensor]:
    """Return the unweighted losses of a layer's segments, given what ``match`` found.

    score: the focal loss of all queries, per true segment of the batch. giou: 1 - generalised IoU of matched pairs.
    """
    of_segment, of_other = focal_terms(predicted.logits, config.focal_alpha, config.focal_gamma)
    chosen = torch.zeros_like(predicted.logits, dtype=torch.bool)
    chosen[matched.video, matched.query] = True
    _, generalised = overlaps(as_segments(predicted.boxes[matched.video, matched.query]), torch.cat([*segments]))
    return {
        "score": torch.where(chosen, of_segment, of_other).sum() / len(matched.query),
        "giou": (1 - generalised).mean(),
    }

"""The training losses of a PDVC decoder layer: true segments are matched with queries, then losses are computed.

Wang et al., ICCV 2021, Sec. 3.4; matchers of Batra et al. (arXiv 2209.15501, Sec. 4). Shapes: B videos with Q queries
and n true segments each, N segments in total. Boxes are (centre, length), segments (start, end), both as fractions of
the video.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from stepline.models.matching import hungarian, ordered, soft_ordered, temporal_order
from stepline.models.pdvc_config import PdvcConfig

SIGMA = 2.0
"""The standard deviation of the Gaussian that reduces the loss of small counting errors."""
ACTIVITYNET = [0, 0, 1936, 4125, 1891, 782, 510, 313, 185, 84, 66, 45, 22, 18, 6, 5, 5, 2, 3, 4, 3, 0, 2, 0, 0, 0, 1, 1]
"""The numbers of ActivityNet Captions' 10,009 training videos with 0, 1, 2, ... segments."""


class Predicted(NamedTuple):
    """The predictions of a decoder layer for each video.

    logits: (B, Q), of a query being a segment. boxes: (B, Q, 2). counts: (B, most + 1), logits of 0..most segments.
    """

    logits: Tensor
    boxes: Tensor
    counts: Tensor


class Matched(NamedTuple):
    """The matched pairs of a layer, and its costs for SoftSODA.

    video, query: (N,) each. tables: (n, Q) costs for each video, queries in temporal order; only for ``soft_soda``.
    """

    video: Tensor
    query: Tensor
    tables: Sequence[Tensor]


def as_segments(boxes: Tensor) -> Tensor:
    """Return the (..., 2) starts and ends for centres and lengths."""
    centre, length = boxes.unbind(-1)
    return torch.stack((centre - length / 2, centre + length / 2), dim=-1)


def as_boxes(segments: Tensor) -> Tensor:
    """Return the (..., 2) centres and lengths for starts and ends."""
    start, end = segments.unbind(-1)
    return torch.stack(((start + end) / 2, end - start), dim=-1)


def overlaps(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """Return IoU and generalised IoU of (..., 2) segments, with broadcast leading dimensions.

    As in the release, 1e-5 is added to each denominator.
    """
    (start, end), (other_start, other_end) = first.unbind(-1), second.unbind(-1)
    inside = (torch.minimum(end, other_end) - torch.maximum(start, other_start)).clamp(min=0)
    union = end - start + other_end - other_start - inside
    hull = torch.maximum(end, other_end) - torch.minimum(start, other_start)
    iou = inside / (union + 1e-5)
    return iou, iou - (hull - union) / (hull + 1e-5)


def focal_terms(logits: Tensor, alpha: float, gamma: float) -> tuple[Tensor, Tensor]:
    """Return the focal losses (Lin et al., ICCV 2017) of logits for the positive and for the negative class."""
    of_segment = alpha * (-logits).sigmoid() ** gamma * functional.softplus(-logits)
    of_other = (1 - alpha) * logits.sigmoid() ** gamma * functional.softplus(logits)
    return of_segment, of_other


def matching_costs(config: PdvcConfig, logits: Tensor, boxes: Tensor, segments: Tensor) -> Tensor:
    """Return the (n, Q) costs of matching a video's true segments with its queries, see ``config.cost``."""
    iou, generalised = overlaps(segments[:, None], as_segments(boxes))
    if config.cost == "iou":
        return -iou
    of_segment, of_other = focal_terms(logits, config.focal_alpha, config.focal_gamma)
    return config.cost_score * (of_segment - of_other) - config.cost_giou * generalised


def match(config: PdvcConfig, predicted: Predicted, segments: Sequence[Tensor]) -> Matched:
    """Return the matched query of each true segment; with given proposals, each segment has its own query.

    segments: (n, 2) for each video. Ordered matchers sort queries by the temporal order of their boxes and require
    sorted segments. The pairs have the minimum cost, also with ``soft_soda``.
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
    """Return the counter's loss for (B, most + 1) logits and (B,) true numbers n, which are clamped to most.

    It is the mean of binary cross entropies. Those of wrong numbers are weighted by 1 - exp(-(number - n)^2 / 8). With
    the weights ``activitynet``, as in the release, each is also weighted by 1 minus the frequency of the number among
    ActivityNet Captions' training videos.
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
    """Return SoftSODA's (layers,) losses: the smooth costs divided by the number of true segments in the batch.

    The tables of all layers and videos are processed together, in a few hundred steps regardless of their number.
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
    """Return the unweighted losses of a layer's segments, given the result of ``match``.

    score: the focal loss of all queries, divided by the number of true segments in the batch. giou: 1 - generalised IoU
    of matched pairs.
    """
    of_segment, of_other = focal_terms(predicted.logits, config.focal_alpha, config.focal_gamma)
    chosen = torch.zeros_like(predicted.logits, dtype=torch.bool)
    chosen[matched.video, matched.query] = True
    _, generalised = overlaps(as_segments(predicted.boxes[matched.video, matched.query]), torch.cat([*segments]))
    return {
        "score": torch.where(chosen, of_segment, of_other).sum() / len(matched.query),
        "giou": (1 - generalised).mean(),
    }

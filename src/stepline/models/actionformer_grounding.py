"""Inference with ActionFormer: segments of steps in a video, and a score per second."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from stepline.models.actionformer import ActionFormer, Said, chosen, decoded, in_seconds
from stepline.models.actionformer_config import Decoding
from stepline.models.grounding import GroundedSegments, GroundedVideo, gather

Texts = NDArray[np.floating[Any]]


def ground(
    model: ActionFormer, video: GroundedVideo, texts: Texts | None = None, *, settings: Decoding
) -> GroundedSegments:
    """Return the segments of a video, of all steps or of the steps of its article, see ``config.candidates``.

    texts: (S, E), the vectors of all steps, for ActionFormer-T.
    """
    steps = video.candidates if model.config.candidates == "article" else None
    found = chosen(decoded(_said(model, video, texts, steps), model.config, settings), settings)
    best = np.argsort(-found.scores, kind="stable")
    start_s, end_s = in_seconds(found.segments[best], video.duration_s).T
    step = found.steps[best] if steps is None else steps[found.steps[best]]
    return GroundedSegments(start_s, end_s, step, found.scores[best].astype(np.float64))


def per_second(model: ActionFormer, video: GroundedVideo, texts: Texts | None = None) -> NDArray[np.float64]:
    """Return the score of each candidate in each row of a video, (T, K) in [0, 1].

    It is the highest score among the points, one per level, that cover the row: a point at row i of a level with stride
    s covers rows i to i + s - 1.
    """
    said = _said(model, video, texts, video.candidates)
    levels = torch.split(said.logits[0].sigmoid(), said.sizes)
    spread = [
        level.repeat_interleave(stride, dim=0) for level, stride in zip(levels, model.config.strides, strict=True)
    ]
    found: NDArray[np.float64] = torch.stack(spread).amax(dim=0)[: len(video.rows)].double().cpu().numpy()
    return found


def _said(model: ActionFormer, video: GroundedVideo, texts: Texts | None, steps: NDArray[np.int64] | None) -> Said:
    device = next(model.parameters()).device
    if texts is not None and steps is not None:
        texts, steps = texts[steps], None
    vectors = None if texts is None else torch.from_numpy(np.asarray(texts, np.float32)).to(device)
    numbers = None if steps is None else torch.from_numpy(steps).to(device)
    features, there = gather([video.rows], model.config.padded(len(video.rows)))
    with torch.inference_mode():
        said: Said = model(features.to(device), there.to(device), vectors, numbers)
    return said

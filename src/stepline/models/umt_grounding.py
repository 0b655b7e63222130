"""Step grounding with UMT: each candidate step is a separate query."""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from stepline.models.grounding import GroundedSegments, GroundedVideo, Rows, gather
from stepline.models.umt import Scores, Umt
from stepline.models.umt_moments import moments
from stepline.models.umt_training import spoken


def ground(model: Umt, video: GroundedVideo, words: Sequence[Rows]) -> GroundedSegments:
    """Return up to ``moments`` segments for each candidate step of a video; the model must be in evaluation mode.

    words: as in ``umt_training.Samples``. Segments of a step may overlap, and end up to one row after the video. Equal
    scores are sorted by candidate, then by row.
    """
    scores = _scores(model, video, words)
    found = moments(scores.center.sigmoid(), scores.window, scores.offset, model.config)
    steps = np.repeat(video.candidates, found.shape[1])
    start_s, end_s, score = found.flatten(0, 1).double().cpu().numpy().T
    best = np.argsort(-score, kind="stable")
    return GroundedSegments(start_s[best], end_s[best], steps[best], score[best])


def per_second(model: Umt, video: GroundedVideo, words: Sequence[Rows]) -> NDArray[np.float32]:
    """Return the (T, K) probabilities that a row is the centre of a moment of each candidate step.

    ``ground`` ranks by them; saliency is not used. The arguments are those of ``ground``.
    """
    found: NDArray[np.float32] = _scores(model, video, words).center.sigmoid().T.cpu().numpy()
    return found


@torch.inference_mode()
def _scores(model: Umt, video: GroundedVideo, words: Sequence[Rows]) -> Scores:
    """Return the predictions for each candidate and row, (K, T); the video is encoded once."""
    device = next(model.parameters()).device
    rows, there = (each.to(device) for each in gather([video.rows], len(video.rows)))
    asked = [each.to(device) for each in spoken([words[step] for step in video.candidates.tolist()])]
    memory = model.video(rows, there)
    n = len(video.candidates)
    return model.answer(memory.expand(n, -1, -1), there.expand(n, -1), *asked)

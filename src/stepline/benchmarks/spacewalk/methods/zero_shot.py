"""Zero-shot: dot products of the features of windows and steps, or of query and candidates (paper Sec. 5.1, 5.2)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from stepline.benchmarks.spacewalk.features import Features
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import Chooser, Outcome, SpacewalkMethod, nearer
from stepline.datasets.studies import RETRIEVAL


class ZeroShot(SpacewalkMethod):
    """Zero-shot matching."""

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the chooser for windows of ``context_s`` seconds."""
        assert context_s is not None
        return partial(match, Features(inputs), context_s)


def match(features: Features, context_s: float, video: str, items: list[Item]) -> list[Outcome]:
    """Return the step, or the candidate, with the highest dot product.

    Irrelevant has no animation, so it is never chosen if the encoder has no text tower for its description.
    """
    windows = list(features.windows(video, items, context_s))
    if features.inputs.entry.task == RETRIEVAL:
        query, *candidates = windows
        return [nearer(np.stack([(query * candidate).sum(axis=1) for candidate in candidates], axis=1))]
    scores = windows[0] @ features.steps(video).T
    chosen = np.nan_to_num(scores, nan=-np.inf).argmax(axis=1)
    return [(0, chosen, scores)]

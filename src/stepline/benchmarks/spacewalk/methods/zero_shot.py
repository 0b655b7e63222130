"""Zero-shot: dot products of the features of windows and steps, or of query and candidates (paper Sec. 5.1, 5.2)."""

from functools import partial
from pathlib import Path

import numpy as np

from stepline.benchmarks.spacewalk.features import Features
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.material import Material
from stepline.benchmarks.spacewalk.methods import Method, Outcome, nearer
from stepline.datasets.studies import RETRIEVAL


def make(material: Material, context_s: float | None, fits: list[Path]) -> Method:
    """Return the method at windows of ``context_s`` seconds."""
    assert context_s is not None
    return partial(match, Features(material), context_s)


def match(features: Features, context_s: float, video: str, items: list[Item]) -> list[Outcome]:
    """Return the step, or the candidate, of the highest dot product.

    Irrelevant is never chosen where it has no feature of its own, having no animation and no text tower.
    """
    windows = list(features.windows(video, items, context_s))
    if features.material.entry.task == RETRIEVAL:
        query, *candidates = windows
        return [nearer(np.stack([(query * candidate).sum(axis=1) for candidate in candidates], axis=1))]
    scores = windows[0] @ features.steps(video).T
    chosen = np.nan_to_num(scores, nan=-np.inf).argmax(axis=1)
    return [(0, chosen, scores)]

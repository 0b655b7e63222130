"""Last-layer fine-tuning: linear maps on frozen features (paper Eq. 1 to 3, Appendix E.1)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from stepline.benchmarks.spacewalk.features import Features, Rows
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import Chooser, Outcome, SpacewalkMethod, nearer, without_irrelevant
from stepline.datasets.schema import Split
from stepline.datasets.studies import RETRIEVAL
from stepline.models.linear import Matching, Pairs, apply_linear, apply_pairs, fit_linear, fit_pairs


class LastLayer(SpacewalkMethod):
    """Last-layer fine-tuning."""

    keeps = "epoch of the lowest validation loss"

    def fit(self, inputs: SpacewalkInputs, seed: int, path: Path) -> None:
        """Fit on train and keep the epoch of the lowest loss on val, without Irrelevant samples, as in Eq. 1."""
        context_s = inputs.job.context_s
        assert context_s is not None
        options = {key: value for key, value in inputs.options["last_layer"].items() if key != "seeds"}
        features = Features(inputs)
        if inputs.entry.task == RETRIEVAL:
            fit_pairs(
                _pairs(features, context_s, "train"), _pairs(features, context_s, "val"), path, seed=seed, **options
            )
            return
        train, val = (matching(features, context_s, split) for split in ("train", "val"))
        fit_linear(train, val, path, seed=seed, **options)

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the chooser for windows of ``context_s`` seconds: the best step; a threshold decides on Irrelevant."""
        assert context_s is not None
        return partial(_apply, Features(inputs), context_s, fits)


def matching(features: Features, context_s: float, split: Split) -> Matching:
    """Return the step samples (label > 0) of a split."""
    items = features.inputs.items(split)
    found, owner, label, steps = [], [], [], list[Rows]()
    for video in features.inputs.recordings(split):
        if not (kept := [item for item in items[video] if item.label > 0]):
            continue
        found.append(next(features.windows(video, kept, context_s)))
        owner += [len(steps)] * len(kept)
        label += [item.label for item in kept]
        steps.append(features.steps(video)[1:])
    return Matching(features=np.concatenate(found), owner=np.array(owner), label=np.array(label), steps=steps)


def _pairs(features: Features, context_s: float, split: Split) -> Pairs:
    items = features.inputs.items(split)
    recordings = [video for video in features.inputs.recordings(split) if items[video]]
    windows = [list(features.windows(video, items[video], context_s)) for video in recordings]
    query, *candidates = (np.concatenate(parts) for parts in zip(*windows, strict=True))
    answer = np.array([item.label for video in recordings for item in items[video]])
    return Pairs(query=query, candidates=np.stack(candidates, axis=1), answer=answer)


def _apply(features: Features, context_s: float, fits: Sequence[Path], video: str, items: list[Item]) -> list[Outcome]:
    entry = features.inputs.entry
    windows = list(features.windows(video, items, context_s))
    outcomes: list[Outcome] = []
    for seed, path in zip(entry.seeds, fits, strict=True):
        if entry.task == RETRIEVAL:
            query, *candidates = windows
            outcomes.append((seed, *nearer(apply_pairs(path, query, np.stack(candidates, axis=1)))[1:]))
            continue
        scores = apply_linear(path, windows[0]) @ features.steps(video)[1:].T
        outcomes.append((seed, scores.argmax(axis=1) + 1, without_irrelevant(scores)))
    return outcomes

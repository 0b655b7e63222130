"""Late fusion of text and vision: a weighted sum of two methods' standardised scores. It is not in the paper."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.items import Item
from stepline.benchmarks.spacewalk.methods import Chooser, Outcome, Scores, SpacewalkMethod, chooser
from stepline.metrics.accuracy import accuracy

WEIGHTS = tuple(step / 10 for step in range(11))
"""The weights of vision to try; the weight of text is 1 minus it."""


class LateFusion(SpacewalkMethod):
    """Late fusion."""

    def chooser(self, inputs: SpacewalkInputs, context_s: float | None, fits: Sequence[Path]) -> Chooser:
        """Return the chooser for windows of ``context_s`` seconds, with its weight chosen on val."""
        return _Fusion(inputs, context_s)


class _Fusion:
    """Fusion with the weight of vision that has the highest mean accuracy over val's recordings; ties: the lowest."""

    def __init__(self, inputs: SpacewalkInputs, context_s: float | None) -> None:
        self.text, self.video = (chooser(part, context_s) for part in inputs.parts[1:])
        items = inputs.items("val")
        found = [(items[video], *self._scores(video, items[video])) for video in inputs.recordings("val")]
        values = [np.mean([_accuracy(*each, weight) for each in found]) for weight in WEIGHTS]
        self.weight = WEIGHTS[int(np.argmax(values))]
        self.selection = f"weight of vision {self.weight:g}, with the highest accuracy on val"

    def __call__(self, video: str, items: list[Item]) -> list[Outcome]:
        scores = _sum(*self._scores(video, items), self.weight)
        return [(0, scores.argmax(axis=1), scores)]

    def _scores(self, video: str, items: list[Item]) -> tuple[Scores, Scores]:
        (_, _, text), (_, _, seen) = self.text(video, items)[0], self.video(video, items)[0]
        assert text is not None
        assert seen is not None
        return _standardised(text), _standardised(seen)


def _standardised(scores: Scores) -> Scores:
    """Return scores standardised per sample; 0 for NaN, and for all scores if their deviation is 0."""
    centred = scores - np.nanmean(scores, axis=1, keepdims=True)
    deviation = np.nanstd(scores, axis=1, keepdims=True)
    standardised = np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 0)
    return np.asarray(np.nan_to_num(standardised), np.float32)


def _accuracy(items: list[Item], text: Scores, seen: Scores, weight: float) -> float:
    labels = np.array([item.label for item in items])
    return accuracy(labels, _sum(text, seen, weight).argmax(axis=1), n_classes=text.shape[1])


def _sum(text: Scores, seen: Scores, weight: float) -> Scores:
    return np.asarray((1 - weight) * text + weight * seen, np.float32)

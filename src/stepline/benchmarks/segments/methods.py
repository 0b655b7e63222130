"""Methods of step recognition. Of equal choices, the first in ``SegmentInputs.steps`` is taken."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import Method
from stepline.benchmarks.segments.inputs import SegmentInputs
from stepline.benchmarks.segments.recognition import Recognised, Segment
from stepline.models.classifier import Examples, classify, fit_classifier
from stepline.models.priors import Priors
from stepline.models.tf_idf import tf_idf


class Recogniser(Method[SegmentInputs, Recognised]):
    """A method that names the step of each segment."""

    def recognise(self, inputs: SegmentInputs, segments: Sequence[Segment], fit: Path) -> Iterable[str]:
        """Return the step of each segment. fit: the checkpoint of one seed; a folder if nothing is fitted."""
        raise NotImplementedError

    def predict(self, inputs: SegmentInputs, fits: Sequence[Path]) -> Iterator[Recognised]:
        """Yield the steps of each video."""
        for split in inputs.entry.splits:
            segments = inputs.used(split)
            for seed, fit in zip(inputs.entry.seeds, fits or [Path()], strict=True):
                steps = iter(self.recognise(inputs, segments, fit))
                for video, each in groupby(segments, key=attrgetter("video")):
                    found = tuple(next(steps) for _ in each)
                    yield Recognised(seed=seed, split=split, video=video, steps=found)


class Prior(Recogniser):
    """The step that the training segments of the procedure suggest at this place, see `Priors`."""

    def recognise(self, inputs: SegmentInputs, segments: Sequence[Segment], fit: Path) -> Iterator[str]:
        """Yield the step of each segment; the procedure's first step if it has no training segments."""
        trained: dict[str, list[Segment]] = {}
        for each in inputs.used("train"):
            trained.setdefault(each.procedure, []).append(each)
        priors = {name: Priors([each.step for each in of], [each.place for each in of]) for name, of in trained.items()}
        for each in segments:
            first, *_ = inputs.steps[each.procedure]
            known = priors.get(each.procedure)
            yield getattr(known, inputs.entry.settings["by"])(each.place) if known else first


class TfIdf(Recogniser):
    """The step whose text is most similar to the speech of the segment: TF-IDF fitted on the procedure's step texts."""

    def recognise(self, inputs: SegmentInputs, segments: Sequence[Segment], fit: Path) -> Iterator[str]:
        """Yield the step of each segment."""
        for each in segments:
            steps = inputs.steps[each.procedure]
            texts = inputs.texts(steps)
            similar = tf_idf([inputs.said(each)], texts) @ tf_idf(texts, texts).T
            yield steps[int(similar.toarray()[0].argmax())]


class Linear(Recogniser):
    """A linear classifier of the mean features of segments, over the steps of their procedures."""

    def fit(self, inputs: SegmentInputs, seed: int, path: Path) -> None:
        """Train on train and keep the epoch with the lowest loss on val."""
        train, val = (_examples(inputs, inputs.used(split)) for split in ("train", "val"))
        fit_classifier(train, val, path, seed=seed, **inputs.training)

    def recognise(self, inputs: SegmentInputs, segments: Sequence[Segment], fit: Path) -> list[str]:
        """Return the step of each segment."""
        steps = _steps(inputs)
        return [steps[each] for each in classify(fit, inputs.pooled(segments), _allowed(inputs, segments))]


def _steps(inputs: SegmentInputs) -> list[str]:
    """Return the steps of all procedures."""
    return list(dict.fromkeys(step for steps in inputs.steps.values() for step in steps))


def _allowed(inputs: SegmentInputs, segments: Sequence[Segment]) -> NDArray[np.bool_]:
    """Return (N, C): which of all steps each segment can show."""
    steps = _steps(inputs)
    of = {name: np.isin(steps, own) for name, own in inputs.steps.items()}
    return np.stack([of[each.procedure] for each in segments])


def _examples(inputs: SegmentInputs, segments: Sequence[Segment]) -> Examples:
    place: dict[str, Any] = {step: index for index, step in enumerate(_steps(inputs))}
    return Examples(
        features=inputs.pooled(segments),
        label=np.array([place[each.step] for each in segments]),
        allowed=_allowed(inputs, segments),
    )

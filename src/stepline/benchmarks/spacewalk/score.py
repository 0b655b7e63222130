"""Metric values of each recording, in percent (released evaluation; paper Appendix D)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import Values
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.kinds import Choice
from stepline.datasets.schema import Split
from stepline.datasets.studies import RETRIEVAL
from stepline.metrics.accuracy import accuracy
from stepline.metrics.average_precision import average_precision
from stepline.metrics.threshold import best_threshold

Labels = Mapping[str, NDArray[np.int64]]
"""The (N,) labels of each recording's samples."""


def values(inputs: SpacewalkInputs, made: Sequence[Choice]) -> Mapping[str, Values]:
    """Return the accuracy, and mAP if there are scores, of one seed's predictions on test.

    A guess scores its expectation, so the accuracy of guesses alone does not depend on the seed. ``n_listed`` and
    ``pool_listed`` count the release's whole split.
    """
    test = [each for each in made if each.split == "test"]
    if not test:
        return {}
    labels, retrieval = _labels(inputs, "test"), inputs.entry.task == RETRIEVAL
    n, n_listed = sum(len(labels[each.video]) for each in test), sum(map(len, labels.values()))
    counts = {"n_listed": len(inputs.annotation.splits["test"])}
    counts |= {"n_queries": n, "pool_used": 2 * n, "pool_listed": 2 * n_listed} if retrieval else {"n_samples": n}
    found: dict[str, list[float | None]] = {"accuracy": [_accuracy(inputs, each, labels[each.video]) for each in test]}
    if not retrieval:
        found["map"] = [_mean_average_precision(inputs, each, labels[each.video]) for each in test]
    guessed = all((each.chosen == -1).all() for each in test)
    return {
        metric: Values(
            videos=[each.video for each in test],
            values=np.array(by_video, dtype=np.float64),
            counts=counts,
            drawn=metric != "accuracy" or not guessed,
            draw_sd=_draw_sd(by_video, test) if metric == "accuracy" and guessed else None,
        )
        for metric, by_video in found.items()
        if None not in by_video
    }


def _draw_sd(expected: Sequence[float | None], made: Sequence[Choice]) -> float:
    """Return the standard deviation, in percent, of drawn answers' mean accuracy over recordings.

    expected: expected accuracies in percent.
    """
    shares = np.array(expected, dtype=np.float64) / 100
    samples = np.array([len(each.ids) for each in made])
    return 100 * float(np.sqrt((shares * (1 - shares) / samples).sum())) / len(made)


def _labels(inputs: SpacewalkInputs, split: Split) -> Labels:
    return {video: np.array([item.label for item in items]) for video, items in inputs.items(split).items()}


def _accuracy(inputs: SpacewalkInputs, made: Choice, labels: NDArray[np.int64]) -> float:
    n_classes = 2 if inputs.entry.task == RETRIEVAL else len(inputs.annotation.recordings[made.video].steps)
    return 100 * accuracy(labels, made.chosen, n_classes=n_classes)


def _mean_average_precision(inputs: SpacewalkInputs, made: Choice, labels: NDArray[np.int64]) -> float | None:
    """Return the mAP over a recording's sampled steps, in percent; None without scores."""
    if made.scores is None:
        return None
    interpolated = inputs.options["metrics"]["average_precision"] == "interpolated"
    steps = range(1, inputs.annotation.recordings[made.video].n_steps + 1)
    found = [average_precision(made.scores[:, k], labels == k, interpolated=interpolated) for k in steps]
    return None if np.isnan(found).all() else 100 * float(np.nanmean(found))


def select(inputs: SpacewalkInputs, made: Sequence[Choice]) -> tuple[Sequence[Choice], str]:
    """Return the predictions with low scores changed to Irrelevant, and a description of the thresholds.

    A score is low if it is below the threshold with the best F1 on val. Predictions of entries without a threshold are
    returned unchanged.
    """
    if not made or not inputs.entry.thresholded:
        return made, ""
    f1, labels = inputs.options["metrics"]["threshold_f1"], _labels(inputs, "val")
    applied, thresholds = apply_thresholds(made, labels, f1=f1)
    return applied, f"threshold of the best {f1} F1 on val: {', '.join(f'{each:.4f}' for each in thresholds)}"


def apply_thresholds(made: Sequence[Choice], labels: Labels, *, f1: Any) -> tuple[list[Choice], list[float]]:
    """Return the predictions with scores below the threshold changed to Irrelevant, and each seed's threshold.

    labels: of val. The threshold of a seed has the best F1 on the seed's predictions for val.
    """
    thresholds = {}
    for seed in sorted({each.seed for each in made}):
        val = [each for each in made if each.split == "val" and each.seed == seed]
        thresholds[seed], _ = best_threshold(
            np.concatenate([labels[each.video] for each in val]),
            np.concatenate([each.chosen for each in val]),
            np.concatenate([_best(each) for each in val]),
            f1=f1,
            groups=np.concatenate([np.full(len(each.ids), number) for number, each in enumerate(val)]),
        )
    applied = [replace(p, chosen=np.where(_best(p) < thresholds[p.seed], 0, p.chosen)) for p in made]
    return applied, list(thresholds.values())


def _best(made: Choice) -> Any:
    assert made.scores is not None
    return made.scores[:, 1:].max(axis=1)

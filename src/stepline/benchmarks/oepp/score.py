"""The values of each window (Sec. 3.3), in percent."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import Values
from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.kinds import Plan
from stepline.metrics.plans import window_scores

BATCH = 32
"""The number of windows whose actions form one set in PDPP's mIoU over batches."""


def values(inputs: OeppInputs, made: Sequence[Plan]) -> Mapping[str, Values]:
    """Return ``<split>_sr``, ``_acc`` and ``_miou`` of one seed's plans. Acc weights windows by number of steps."""
    batched = inputs.options["metrics"]["miou"] == "batch"
    found = {}
    for split in inputs.entry.splits:
        listed = {(window.video, window.index): window for window in inputs.truth(split)}
        plans = [each for each in made if each.split == split]
        true = inputs.labels(split, [listed[each.video, each.index] for each in plans])
        scores = _by_window([each.plan for each in plans], true, len(inputs.pool(split)), batched=batched)
        for metric, each in scores.items():
            found[f"{split}_{metric}"] = Values(
                videos=[plan.video for plan in plans],
                values=each,
                weights=np.array(list(map(len, true)), dtype=np.float64) if metric == "acc" else None,
                counts={"n_listed": len({video for video, _ in listed}), "n_samples": len(plans)},
                interval=not (batched and metric == "miou"),
            )
    return found


def _by_window(
    plans: Sequence[tuple[int, ...]], true: Sequence[tuple[int, ...]], pool: int, *, batched: bool
) -> dict[str, NDArray[Any]]:
    """Return each metric of each window in percent; if ``batched``, mIoU is the value of the window's batch."""
    found = {metric: np.empty(len(plans)) for metric in ("sr", "acc", "miou")}
    for length in {*map(len, true)}:
        places = [place for place, each in enumerate(true) if len(each) == length]
        scores = window_scores([plans[p] for p in places], [true[p] for p in places], n_actions=pool)
        for metric, each in zip(found, scores, strict=True):
            found[metric][places] = 100 * each
    if batched:
        for start in range(0, len(plans), BATCH):
            batch = slice(start, start + BATCH)
            joined = ([tuple(chain(*each[batch]))] for each in (plans, true))
            found["miou"][batch] = 100 * window_scores(*joined, n_actions=pool).iou
    return found

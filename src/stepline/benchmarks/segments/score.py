"""How often the steps of segments are recognised."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stepline.benchmark import Values
from stepline.benchmarks.segments.inputs import SegmentInputs
from stepline.benchmarks.segments.recognition import Recognised, Segment


def values(inputs: SegmentInputs, made: Sequence[Recognised]) -> Mapping[str, Values]:
    """Return the values of each segment, in percent."""
    truth: dict[str, list[Segment]] = {}
    for each in (each for split in inputs.entry.splits for each in inputs.truth(split)):
        truth.setdefault(each.video, []).append(each)
    pairs = [pair for each in made for pair in zip(truth[each.video], each.steps, strict=True)]
    right = np.array([100.0 * (true.step == step) for true, step in pairs])
    parts = np.array([true.part for true, _ in pairs])
    numbers = Counter(true.step for true, _ in pairs)
    about: dict[str, Any] = {
        "videos": [true.video for true, _ in pairs],
        "counts": {"n_listed": len(truth), "n_samples": len(pairs)},
    }
    return {
        "accuracy": Values(values=right, **about),
        "by_step": Values(values=right, weights=np.array([1 / numbers[true.step] for true, _ in pairs]), **about),
        **{part: Values(values=np.where(parts == part, right, np.nan), **about) for part in {*parts} - {""}},
    }

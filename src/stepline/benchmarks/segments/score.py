"""How often the steps of segments are recognised."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

import numpy as np

from stepline.benchmark import Values
from stepline.benchmarks.segments.inputs import SegmentInputs
from stepline.benchmarks.segments.recognition import Recognised, Segment
from stepline.errors import ConfigError


def values(inputs: SegmentInputs, made: Sequence[Recognised]) -> Mapping[str, Values]:
    """Return the values of each segment, in percent."""
    truth: dict[str, list[Segment]] = {}
    for each in (each for split in inputs.entry.splits for each in inputs.truth(split)):
        truth.setdefault(each.video, []).append(each)
    for each in made:
        if len(each.steps) != len(truth[each.video]):
            raise ConfigError(
                f"{each.video} has {len(truth[each.video])} segments and {len(each.steps)} predicted steps: if their "
                f"reader has changed, raise `reader_revision` of {type(inputs.benchmark).__name__}"
            )
    pairs = [pair for each in made for pair in zip(truth[each.video], each.steps, strict=True)]
    of_step: dict[tuple[str, str], list[float]] = {}
    for true, step in pairs:
        of_step.setdefault((true.procedure, true.step), []).append(100.0 * (true.step == step))
    parts = {part: [pair for pair in pairs if pair[0].part == part] for part in {true.part for true, _ in pairs} - {""}}
    listed = {part: {each.video for of in truth.values() for each in of if each.part == part} for part in parts}
    return {
        "accuracy": _values(pairs, truth),
        "by_step": replace(_values(pairs, truth), corpus=fmean(map(fmean, of_step.values()))),
        **{part: _values(chosen, listed[part]) for part, chosen in parts.items()},
    }


def _values(pairs: Sequence[tuple[Segment, str]], listed: Collection[str]) -> Values:
    """Return the values of segments, each with its predicted step."""
    return Values(
        videos=[true.video for true, _ in pairs],
        values=np.array([100.0 * (true.step == step) for true, step in pairs]),
        counts={"n_listed": len(listed), "n_samples": len(pairs)},
    )

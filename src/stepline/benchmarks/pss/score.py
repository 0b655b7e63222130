"""Metric values of each video, in percent (Sec. 3, 5.2)."""

import atexit
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import cache
from typing import Any

import numpy as np

from stepline.benchmark import Values
from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.kinds import Segmentation
from stepline.metrics.captions import Scorer, bleu, cider, meteor_stem, rouge_l
from stepline.metrics.dense_captions import Captioned, similarity, summarisation
from stepline.metrics.meteor import Meteor
from stepline.metrics.segments import Grid, as_segments, mean_iou, mean_jaccard
from stepline.metrics.soda import soda_c, soda_d_videos

GRIDS: dict[str, Grid] = {"": "continuous", "_1fps": "label_1fps"}


def values(inputs: PssInputs, made: Sequence[Segmentation]) -> Mapping[str, Values]:
    """Return the values of each metric for one seed's predictions.

    A video without predicted segments scores 0, or is left out (NaN) with ``missing: drop``.
    """
    options = inputs.options["metrics"]
    scorers = {} if inputs.entry.kind.metrics else _scorers(not inputs.benchmark.missing_of("meteor"))
    listed = {each.video: each for split in inputs.entry.splits for each in inputs.truth(split)}
    truth = [listed[p.video] for p in made]
    pairs = list(zip(truth, made, strict=True))
    found: dict[str, Any] = {
        f"{name}{suffix}": [metric(t.segments, p.segments, grid=grid) for t, p in pairs]
        for name, metric in (("miou", mean_iou), ("mjaccard", mean_jaccard))
        for suffix, grid in GRIDS.items()
    }
    scores = soda_d_videos([t.segments for t in truth], [p.segments for p in made], order=options["order"])
    found |= {"precision": scores.precision, "recall": scores.recall, "soda_d": scores.f1}
    if scorers:
        said = {t.video: Captioned(as_segments(t.segments), t.sentences) for t in truth}
        found |= summarisation(said, {p.video: Captioned(as_segments(p.segments), p.sentences) for p in made}, scorers)
    for name in {"meteor", "meteor_stem"} & scorers.keys():
        found[name.replace("meteor", "soda_c")] = [
            soda_c(
                t.segments, p.segments, similarity(t.sentences, p.sentences, scorers[name]), order=options["order"]
            ).f1
            for t, p in pairs
        ]
    dropped = np.array([not p.segments and options["missing"] == "drop" for p in made], dtype=bool)
    return {
        metric: Values(
            videos=[p.video for p in made],
            values=np.where(dropped, np.nan, 100 * np.asarray(each)),
            counts={"n_listed": len(listed)},
        )
        for metric, each in found.items()
    }


@cache
def _scorers(meteor: bool) -> Mapping[str, Scorer]:
    """Return the scorers of sentences, by metric; all seeds share one METEOR process."""
    scorers: dict[str, Scorer] = {"bleu4": bleu, "cider": cider, "rouge_l": rouge_l, "meteor_stem": meteor_stem}
    if meteor:
        stack = ExitStack()
        atexit.register(stack.close)
        scorers["meteor"] = stack.enter_context(Meteor()).score
    return scorers

"""The values of each query, moment, video and step (Sec. 4.3), as the released evaluator computes them, and ours."""

from collections.abc import Mapping, Sequence

import numpy as np

from stepline.benchmark import Values
from stepline.benchmarks.hirest import captions
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.datasets import hirest
from stepline.datasets.hirest import Pair
from stepline.metrics.moments import (
    match_one_to_one,
    mean_iou,
    moment_iou,
    preprocess_moment_bounds,
    segmentation_scores,
)

THRESHOLDS = {"05": 0.5, "07": 0.7}
CUTOFFS = (1, 5, 10, 50)
Pairs = Mapping[str, Pair]
"""Annotated pairs by video."""


def values(inputs: HirestInputs, made: Sequence[Found]) -> Mapping[str, Values]:
    """Return each metric of one seed's predictions. A query or video that is not there is left out, and counted."""
    if "pool" in inputs.entry.splits:
        return _retrieval(inputs, made)
    found: dict[str, Values] = {}
    for split, pairs in _truth(inputs).items():
        here = [each for each in made if each.video in pairs]
        if moments := {each.video: each.moment for each in here if each.moment is not None}:
            found |= _moments(split, pairs, moments)
        stepped = {video: pair for video, pair in pairs.items() if pair.steps}
        if split == "test":
            continue
        if segments := {each.video: each.segments for each in here if each.segments is not None}:
            found |= _segments(split, stepped, segments, inputs.options["metrics"]["preprocess_moment_bounds"])
        if sentences := {each.video: each.sentences for each in here if each.sentences is not None}:
            found |= captions.values(inputs, split, stepped, sentences)
    return found


def _truth(inputs: HirestInputs) -> dict[str, Pairs]:
    """Return the annotated pairs by what metrics call their split; test as a whole where its moments are known."""
    test = {pair.video: pair for pair in inputs.truth("test")}
    return {
        "val": {pair.video: pair for pair in inputs.truth("val")},
        "test_507": {video: pair for video, pair in test.items() if pair.steps},
        **({"test": test} if hirest.labels_are_here() else {}),
    }


def _retrieval(inputs: HirestInputs, made: Sequence[Found]) -> dict[str, Values]:
    """Return recall of any of a query's videos; of all queries, one whose videos are absent is a miss."""
    ranked = {each.query: each.ranked or () for each in made}
    pools = {each.pool for each in made}
    counts = {
        "n_queries": len(ranked),
        "pool_used": max((pool or 0 for pool in pools), default=0),
        "pool_listed": len(inputs.truth("pool")),
    }
    found = {}
    for k in CUTOFFS:
        hits = {query: 100.0 * bool({*ranked.get(query, ())[:k]} & {*of}) for query, of in inputs.queries.items()}
        of_all = np.array([*hits.values()])
        there = np.array([value if query in ranked else np.nan for query, value in hits.items()])
        found[f"r{k}"] = Values(videos=[*hits], values=there, counts=counts)
        found[f"r{k}_all"] = Values(videos=[*hits], values=of_all, counts=counts)
    return found


def _moments(split: str, pairs: Pairs, moments: Mapping[str, tuple[float, ...]]) -> dict[str, Values]:
    """Return hits (IoU >= t) and IoU of each moment."""
    true, said = (np.array(each) for each in ([pairs[video].bounds_s for video in moments], [*moments.values()]))
    ious = moment_iou(true, said)
    about = {"videos": [*moments], "counts": {"n_listed": len(pairs), "n_samples": len(moments)}}
    hits = {f"{split}_r_{name}": Values(values=100.0 * (ious >= t), **about) for name, t in THRESHOLDS.items()}
    return hits | {f"{split}_miou": Values(values=100 * ious, **about)}


def _segments(
    split: str, pairs: Pairs, segments: Mapping[str, tuple[tuple[float, ...], ...]], preprocess: bool
) -> dict[str, Values]:
    """Return the released recall and precision of each video, and ours one to one."""
    found: dict[str, list[float]] = {}
    for video, said in segments.items():
        pair = pairs[video]
        assert pair.bounds_s is not None
        true = [(step.start_s, step.end_s) for step in pair.steps]
        cleaned = preprocess_moment_bounds(said, pair.bounds_s) if preprocess else said
        for prefix, made in (("", cleaned), ("raw_", said)):
            for name, t in THRESHOLDS.items():
                recall, precision = segmentation_scores(true, made, t)
                found.setdefault(f"{prefix}recall_{name}", []).append(recall)
                found.setdefault(f"{prefix}precision_{name}", []).append(precision)
        for name, t in THRESHOLDS.items():
            found.setdefault(f"f1_{name}", []).append(match_one_to_one(true, said, t).f1)
        found.setdefault("segment_miou", []).append(mean_iou(true, said))
    about = {"videos": [*segments], "counts": {"n_listed": len(pairs)}}
    return {f"{split}_{name}": Values(values=100 * np.array(each), **about) for name, each in found.items()}

"""The values of each query, moment, video and step (Sec. 4.3): the metrics of the released evaluator and our own."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stepline.benchmark import Values
from stepline.benchmarks.hirest import captions
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.datasets import hirest
from stepline.datasets.hirest import Pair
from stepline.metrics.moments import (
    THRESHOLDS,
    matched_scores,
    moment_hits,
    moment_iou,
    preprocess_moment_bounds,
    segmentation_scores,
)
from stepline.metrics.retrieval import first_rank

NAMES = [f"{threshold:.1f}".replace(".", "") for threshold in THRESHOLDS]
"""The thresholds as written in the keys of metrics."""
CUTOFFS = (1, 5, 10, 50)
Pairs = Mapping[str, Pair]
"""Annotated pairs by video."""


def values(inputs: HirestInputs, made: Sequence[Found]) -> Mapping[str, Values]:
    """Return each metric of one seed's predictions. Unavailable queries and videos are left out and counted."""
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
    """Return the annotated pairs by the split of metrics, with the whole of test if its moments are known."""
    splits = ["val", "test_507", *(["test"] if hirest.labels_are_here() else [])]
    return {split: {pair.video: pair for pair in inputs.truth(split)} for split in splits}


def _retrieval(inputs: HirestInputs, made: Sequence[Found]) -> dict[str, Values]:
    """Return the recall of any of a query's videos. Over all queries (``_all``), a query without videos is a miss."""
    said = {each.query: each for each in made}
    ranks = [
        first_rank(said[query].ranked or (), answers) if query in said else np.nan
        for query, answers in inputs.queries.items()
    ]
    about: dict[str, Any] = {
        "videos": [*inputs.queries],
        "units": "queries",
        "counts": {
            "n_videos": None,  # queries are counted instead, and videos in the pool
            "n_queries": len(said),
            "queries_listed": len(inputs.queries),
            "pool_used": min((each.pool or 0 for each in made), default=0),
            "pool_listed": len(inputs.truth("pool")),
        },
    }
    found = {}
    for k in CUTOFFS:
        hits = np.where(np.array(ranks) <= k, 100.0, 0.0)
        found[f"r{k}"] = Values(values=np.where(np.isnan(ranks), np.nan, hits), **about)
        found[f"r{k}_all"] = Values(values=hits, **about)
    return found


def _moments(split: str, pairs: Pairs, moments: Mapping[str, tuple[float, ...]]) -> dict[str, Values]:
    """Return the hit at each threshold and the IoU of each moment."""
    true, said = np.array([pairs[video].bounds_s for video in moments]), np.array([*moments.values()])
    about: dict[str, Any] = {"videos": [*moments], "counts": {"n_listed": len(pairs), "n_samples": len(moments)}}
    hits = dict(zip(NAMES, 100.0 * moment_hits(true, said).T, strict=True))
    found = {f"{split}_r_{name}": Values(values=np.asarray(each), **about) for name, each in hits.items()}
    return found | {f"{split}_miou": Values(values=100 * moment_iou(true, said), **about)}


def _segments(
    split: str, pairs: Pairs, segments: Mapping[str, tuple[tuple[float, ...], ...]], preprocess: bool
) -> dict[str, Values]:
    """Return the released recall and precision of each video, and our one-to-one scores."""
    found: dict[str, list[float]] = {}
    for video, said in segments.items():
        bounds_s, true = pairs[video].bounds_s, [(step.start_s, step.end_s) for step in pairs[video].steps]
        assert bounds_s is not None
        scores = {
            "": segmentation_scores(true, preprocess_moment_bounds(said, bounds_s) if preprocess else said),
            "raw_": segmentation_scores(true, said),
        }
        for place, name in enumerate(NAMES):
            for prefix, score in scores.items():
                found.setdefault(f"{prefix}recall_{name}", []).append(score.recall[place])
                found.setdefault(f"{prefix}precision_{name}", []).append(score.precision[place])
            found.setdefault(f"f1_{name}", []).append(matched_scores(true, said).f1[place])
        found.setdefault("segment_miou", []).append(_best(true, said))
    about: dict[str, Any] = {"videos": [*segments], "counts": {"n_listed": len(pairs)}}
    return {f"{split}_{name}": Values(values=100 * np.array(each), **about) for name, each in found.items()}


def _best(true: Sequence[tuple[float, float]], said: Sequence[tuple[float, ...]]) -> float:
    """Return the mean over true steps of the best IoU with a predicted step; 0 without predictions."""
    return float(moment_iou(np.array(true)[:, None], np.array(said)).max(axis=1).mean()) if said else 0.0

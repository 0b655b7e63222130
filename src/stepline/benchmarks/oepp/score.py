"""Scores of one predictions file (Sec. 3.3)."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.benchmarks.oepp.material import Material
from stepline.benchmarks.oepp.predictions import Prediction, read_predictions
from stepline.config import Config
from stepline.datasets.oepp import Part
from stepline.errors import StoreError
from stepline.io import write_json
from stepline.metrics.bootstrap import bootstrap_interval
from stepline.metrics.plans import window_scores

BATCH = 32
"""Windows whose actions are one set in PDPP's mIoU of batches."""


def score(material: Material, predictions: Path, path: Path) -> None:
    """Write the metrics of a predictions file, ``<part>_sr``, ``_acc`` and ``_miou``: the mean over seeds, in percent.

    SR and mIoU are means over windows, Acc over steps. ``ci`` is the 95 % bootstrap interval of the mean over seeds:
    videos are drawn, each with all its windows. ``sd`` is the standard deviation over seeds, null of one. ``n_videos``
    counts the videos with a plan, ``n_listed`` those with a window.
    """
    made, about = read_predictions(predictions)
    if about.get("spec") != material.spec:
        raise StoreError(f"{predictions} was made by another configuration: run `stepline predict` again")
    results: dict[str, Any] = {}
    for part in material.entry.parts if made else ():
        results |= _part_metrics(material, part, [each for each in made if each.part == part])
    write_json(
        path,
        {
            "metrics": results,
            "selection": about["selection"],
            "status": "needs" if about["needs"] else "present",
            "needs": about["needs"],
        },
    )


def _part_metrics(material: Material, part: Part, made: Sequence[Prediction]) -> Mapping[str, Any]:
    options, pool = material.options["metrics"], len(material.pool(part))
    listed = {(window.video, window.index): window for window in material.windows(part)}
    seeds = sorted({each.seed for each in made})
    tables: dict[str, list[NDArray[np.float64]]] = {}
    first = [each for each in made if each.seed == seeds[0]]
    for seed in seeds:
        mine = [each for each in made if each.seed == seed]
        true = material.labels(part, [listed[each.video, each.index] for each in mine])
        for metric, values in _by_window([each.plan for each in mine], true, pool, options).items():
            tables.setdefault(metric, []).append(values)
    steps = np.array([len(each.plan) for each in first], dtype=np.float64)
    videos = [each.video for each in first]
    counted = {
        "n_videos": len(set(videos)),
        "n_listed": len({video for video, _ in listed}),
        "n_samples": len(first),
        "seeds": seeds if material.entry.trained else [],
    }
    results = {}
    for metric, by_seed in tables.items():
        weights = steps if metric == "acc" else np.ones_like(steps)
        per_seed = [float(np.average(values, weights=weights)) for values in by_seed]
        per_video, of_video = _by_video(videos, np.mean(by_seed, axis=0), weights)
        low, high = bootstrap_interval(
            list(per_video.values()),
            samples=options["bootstrap_samples"],
            seed=options["bootstrap_seed"],
            weights=of_video,
        )
        batched = metric == "miou" and options["miou"] == "batch"
        results[f"{part}_{metric}"] = counted | {
            "value": float(np.mean(per_seed)),
            "sd": float(np.std(per_seed, ddof=1)) if len(per_seed) > 1 else None,
            "ci": None if batched or np.isnan(low) else [low, high],
            "per_seed": per_seed,
            "per_video": per_video,
        }
    return results


def _by_window(
    plans: Sequence[tuple[int, ...]], true: Sequence[tuple[int, ...]], pool: int, options: Config
) -> dict[str, NDArray[np.float64]]:
    """Return each metric of each window in percent; of batches' mIoU, that of its batch."""
    found = {metric: np.empty(len(plans)) for metric in ("sr", "acc", "miou")}
    for length in {*map(len, true)}:
        places = [place for place, each in enumerate(true) if len(each) == length]
        scores = window_scores([plans[p] for p in places], [true[p] for p in places], n_actions=pool)
        for metric, values in zip(found, scores, strict=True):
            found[metric][places] = 100 * values
    if options["miou"] == "batch":
        for start in range(0, len(plans), BATCH):
            batch = slice(start, start + BATCH)
            joined = ([tuple(chain(*each[batch]))] for each in (plans, true))
            found["miou"][batch] = 100 * window_scores(*joined, n_actions=pool).iou
    return found


def _by_video(
    videos: Sequence[str], values: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[dict[str, float], list[float]]:
    """Return each video's mean over its windows, and what it weighs."""
    place = {video: number for number, video in enumerate(dict.fromkeys(videos))}
    of = [place[video] for video in videos]
    total = np.bincount(of, weights)
    return dict(zip(place, (np.bincount(of, values * weights) / total).tolist(), strict=True)), total.tolist()

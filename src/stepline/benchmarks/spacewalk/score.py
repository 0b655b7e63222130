"""Scores of one predictions file (released evaluation; paper Appendix D)."""

from pathlib import Path
from typing import Any

import numpy as np

from stepline.benchmarks.spacewalk.material import Material
from stepline.benchmarks.spacewalk.predictions import Prediction, read_predictions
from stepline.datasets.schema import Split
from stepline.datasets.studies import RETRIEVAL
from stepline.io import write_json
from stepline.metrics.accuracy import accuracy
from stepline.metrics.average_precision import average_precision
from stepline.metrics.bootstrap import bootstrap_interval
from stepline.metrics.threshold import best_threshold


def score(material: Material, predictions: Path, path: Path) -> None:
    """Write the metrics of a predictions file: per video, then the mean over videos, then over seeds; in percent.

    Reads predictions and labels only. ``ci`` is the 95 % bootstrap interval over videos of the mean over seeds; ``sd``
    the standard deviation over seeds, null of one seed. Accuracy of nothing but guesses, which count with their
    expectation, is the same with every seed: it is of one. ``n_listed`` and ``pool_listed`` count the release's split.
    """
    made, about = read_predictions(predictions)
    metrics = material.study_config["metrics"]
    labels = {split: _labels(material, split) for split in {p.split for p in made}}  # type: ignore[arg-type]
    selection = str(about["selection"])
    if about["thresholded"] and made:
        made, chosen = apply_thresholds(made, labels, f1=metrics["threshold_f1"])
        selection += f"; threshold of the best {metrics['threshold_f1']} F1 on val: {chosen}"
    test = [p for p in made if p.split == "test"]
    drawn = sorted({p.seed for p in test})
    guessed = all((p.chosen == -1).all() for p in test)
    videos = list(dict.fromkeys(p.video for p in test))

    results = {}
    for metric in material.entry.metrics:
        seeds = drawn[:1] if metric == "accuracy" and guessed else drawn
        values = {
            seed: {p.video: _value(metric, material, p, labels["test"][p.video]) for p in test if p.seed == seed}
            for seed in seeds
        }
        if not test or any(value is None for by_video in values.values() for value in by_video.values()):
            continue
        table = np.array([[values[seed][video] for video in videos] for seed in seeds], dtype=np.float64)
        low, high = bootstrap_interval(
            table.mean(axis=0).tolist(), samples=metrics["bootstrap_samples"], seed=metrics["bootstrap_seed"]
        )
        results[metric] = {
            "value": float(table.mean()),
            "sd": float(table.mean(axis=1).std(ddof=1)) if len(seeds) > 1 else None,
            "ci": None if np.isnan(low) else [low, high],
            "seeds": seeds,
            "per_seed": table.mean(axis=1).tolist(),
            "per_video": dict(zip(videos, table.mean(axis=0).tolist(), strict=True)),
        }

    n = sum(len(labels["test"][video]) for video in videos)
    retrieval = material.entry.task == RETRIEVAL
    n_listed = sum(map(len, material.items("test").values()))
    write_json(
        path,
        {
            "metrics": results,
            "n_videos": len(videos),
            "n_listed": len(material.release.splits["test"]),
            "n_samples": None if retrieval else n,
            "n_queries": n if retrieval else None,
            "pool_used": 2 * n if retrieval else None,
            "pool_listed": 2 * n_listed if retrieval else None,
            "selection": selection,
            "status": "needs" if about["needs"] else "present",
            "needs": about["needs"],
        },
    )


def _labels(material: Material, split: Split) -> dict[str, np.ndarray[Any, np.dtype[np.int64]]]:
    items = material.items(split)
    return {video: np.array([item.label for item in items[video]]) for video in items}


def _value(metric: str, material: Material, p: Prediction, labels: Any) -> float | None:
    n_steps = material.release.recordings[p.video].n_steps
    if metric == "accuracy":
        n_classes = 2 if material.entry.task == RETRIEVAL else n_steps + 1
        return 100 * accuracy(labels, p.chosen, n_classes=n_classes)
    if p.scores is None:
        return None
    interpolated = material.study_config["metrics"]["average_precision"] == "interpolated"
    steps = range(1, n_steps + 1)
    values = [average_precision(p.scores[:, k], labels == k, interpolated=interpolated) for k in steps]
    return None if np.isnan(values).all() else 100 * float(np.nanmean(values))


def apply_thresholds(made: list[Prediction], labels: Any, *, f1: Any) -> tuple[list[Prediction], str]:
    """Return predictions with Irrelevant where the best score is below the threshold, and each seed's threshold.

    labels: by split and video, (N,) labels; the threshold of a seed is that of the best F1 on its ``val``.
    """
    thresholds = {}
    for seed in sorted({p.seed for p in made}):
        val = [p for p in made if p.split == "val" and p.seed == seed]
        thresholds[seed], _ = best_threshold(
            np.concatenate([labels["val"][p.video] for p in val]),
            np.concatenate([p.chosen for p in val]),
            np.concatenate([_best(p) for p in val]),
            f1=f1,
            groups=np.concatenate([np.full(len(p.ids), number) for number, p in enumerate(val)]),
        )
    applied = [
        Prediction(
            seed=p.seed,
            split=p.split,
            video=p.video,
            ids=p.ids,
            chosen=np.where(_best(p) < thresholds[p.seed], 0, p.chosen),
            scores=p.scores,
        )
        for p in made
    ]
    return applied, ", ".join(f"{value:.4f}" for value in thresholds.values())


def _best(p: Prediction) -> Any:
    assert p.scores is not None
    return p.scores[:, 1:].max(axis=1)

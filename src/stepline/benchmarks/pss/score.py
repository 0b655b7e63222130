"""Scores of one predictions file (Sec. 3, 5.2)."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from stepline.benchmarks.pss.material import Material
from stepline.benchmarks.pss.predictions import Prediction, read_predictions
from stepline.config import Config
from stepline.datasets.pss import Procedure
from stepline.io import write_json
from stepline.metrics.bootstrap import bootstrap_interval
from stepline.metrics.captions import Scorer, bleu, cider, meteor_stem, rouge_l
from stepline.metrics.dense_captions import Captioned, similarity, summarisation
from stepline.metrics.meteor import Meteor
from stepline.metrics.segments import Grid, as_segments, mean_iou, mean_jaccard
from stepline.metrics.soda import soda_c, soda_d_videos

Values = Mapping[str, Sequence[float]]
"""By metric, a number in percent for each video."""
METEOR = ("meteor", "soda_c")
"""The metrics that need the real METEOR."""


def score(material: Material, predictions: Path, path: Path) -> None:
    """Write the metrics of a predictions file: per video, then the mean over videos, then over seeds; in percent.

    ``ci`` is the 95 % bootstrap interval over videos of the mean over seeds; ``sd`` the standard deviation over seeds,
    null of one. A video for which nothing was predicted is 0, or left out with ``missing: drop``; a seed that predicted
    nothing at all is 0 in any case. ``n_videos`` counts what is not left out.
    """
    made, about = read_predictions(predictions)
    options = material.plan.study_config["metrics"]
    listed = {video: each for split in material.entry.splits for video, each in material.procedures(split).items()}
    seeds = sorted({p.seed for p in made})
    with ExitStack() as stack:
        scorers = _scorers(material, stack)
        by_seed = {seed: _by_video([p for p in made if p.seed == seed], listed, scorers, options) for seed in seeds}
    videos = list(dict.fromkeys(p.video for p in made))
    silent = sum(not p.segments for p in made)
    results = {}
    for metric in by_seed[seeds[0]] if seeds else ():
        table = np.array([by_seed[seed][metric] for seed in seeds])
        per_seed, per_video = np.nan_to_num(_means(table, axis=1)), _means(table, axis=0)
        kept = per_video[~np.isnan(per_video)]
        low, high = bootstrap_interval(
            kept.tolist(), samples=options["bootstrap_samples"], seed=options["bootstrap_seed"]
        )
        results[metric] = {
            "value": float(per_seed.mean()),
            "sd": float(per_seed.std(ddof=1)) if len(seeds) > 1 else None,
            "ci": None if np.isnan(low) else [low, high],
            "seeds": seeds if material.entry.trained else [],
            "per_seed": per_seed.tolist(),
            "per_video": {
                video: value for video, value in zip(videos, per_video.tolist(), strict=True) if not np.isnan(value)
            },
        }
    said = f"nothing predicted for {silent} of {len(made)} videos and seeds: {options['missing']}" if silent else ""
    write_json(
        path,
        {
            "metrics": results,
            "n_videos": len(next(iter(results.values()))["per_video"]) if results else 0,
            "n_listed": len(listed),
            "selection": "; ".join(filter(None, [str(about["selection"]), said])),
            "status": "needs" if about["needs"] else "present",
            "needs": about["needs"],
        },
    )


def _means(table: Any, *, axis: int) -> Any:
    """Return means of what is there; NaN where nothing is."""
    there = ~np.isnan(table)
    return np.where(there, table, 0).sum(axis=axis) / np.where(there.any(axis=axis), there.sum(axis=axis), np.nan)


def _scorers(material: Material, stack: ExitStack) -> dict[str, Scorer]:
    """Return what scores sentences, by metric; the real METEOR where it is there. None where there are no sentences."""
    if not material.entry.made.captions:
        return {}
    scorers: dict[str, Scorer] = {"bleu4": bleu, "cider": cider, "rouge_l": rouge_l, "meteor_stem": meteor_stem}
    if not material.plan.meteor_lacks:
        scorers["meteor"] = stack.enter_context(Meteor()).score
    return scorers


def _by_video(
    made: Sequence[Prediction], listed: Mapping[str, Procedure], scorers: Mapping[str, Scorer], options: Config
) -> Values:
    truth = [listed[p.video] for p in made]
    pairs = list(zip(truth, made, strict=True))
    grids: dict[str, Grid] = {"": "continuous", "_1fps": "label_1fps"}
    found: dict[str, Any] = {
        f"{name}{suffix}": [metric(t.segments, p.segments, grid=grid) for t, p in pairs]
        for name, metric in (("miou", mean_iou), ("mjaccard", mean_jaccard))
        for suffix, grid in grids.items()
    }
    scores = soda_d_videos([t.segments for t in truth], [p.segments for p in made], order=options["order"])
    found |= {"precision": scores.precision, "recall": scores.recall, "soda_d": scores.f1}
    if scorers:
        said = {t.video: Captioned(as_segments(t.segments), t.sentences) for t in truth}
        found |= summarisation(said, {p.video: Captioned(as_segments(p.segments), p.sentences) for p in made}, scorers)
    for name in {"meteor", "meteor_stem"} & scorers.keys():
        found[name.replace("meteor", "soda_c")] = [
            soda_c(
                t.segments,
                p.segments,
                similarity(t.sentences, p.sentences, scorers[name]),
                order=options["order"],
            ).f1
            for t, p in pairs
        ]
    dropped = np.array([not p.segments and options["missing"] == "drop" for p in made], dtype=bool)
    return {metric: np.where(dropped, np.nan, 100 * np.asarray(values)).tolist() for metric, values in found.items()}

"""Scores of a predictions file: means, seeds, intervals over videos, denominators and per-video values."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepline.benchmark import Benchmark, Values
from stepline.config import Config
from stepline.errors import ConfigError
from stepline.io import write_sealed
from stepline.metrics.bootstrap import bootstrap_interval
from stepline.runs.inputs import Inputs
from stepline.runs.predictions import read_predictions


def score(inputs: Inputs[Any], predictions: Path, path: Path) -> None:
    """Write the metrics of a predictions file, in percent or as counts, or the missing inputs if there are none.

    A value is the mean over seeds of the (weighted) mean over units, or of the joint value of the units if they define
    one. A seed whose units are all left out counts as 0, the lowest percentage or count; for other metrics it is an
    error. ``ci`` is the 95 % bootstrap interval of the mean over seeds;
    videos are resampled with all their units. ``sd`` is the standard deviation over seeds, null for one seed.
    ``draw_sd`` is the standard deviation of random guesses, which count with their expectation. ``per_video`` is the
    mean of each video over its units and seeds, ``weights`` its weight, ``units`` what these are if not videos, and
    ``n_videos`` the number of videos that are not left out. If some of them, or of the pool of a ranking, are damaged,
    ``n_in_part`` is the number of damaged videos and ``absent_s`` their missing seconds. ``title``, ``definition``,
    ``options`` and ``split`` say what was measured; ``shown_in`` is the data set whose timelines show the predictions,
    "" if none can.
    """
    benchmark = inputs.benchmark
    read, about = read_predictions(predictions, benchmark.prediction, inputs.spec)
    made, chosen = benchmark.select(inputs, read)
    groups = groupby(sorted(made, key=_seed), key=_seed)
    by_seed = {seed: benchmark.values(inputs, list(group)) for seed, group in groups}
    first: Mapping[str, Values] = next(iter(by_seed.values()), {})
    for metric in first:
        if metric not in benchmark.metrics:
            known = ", ".join(benchmark.metrics)
            raise ConfigError(f"{type(benchmark).__name__}.values: {metric!r} is not a metric; choose from {known}")
        if any(list(each[metric].videos) != list(first[metric].videos) for each in by_seed.values()):
            raise ConfigError(
                f"{type(benchmark).__name__}.values: the units of {metric!r} for {inputs.entry.id} differ between "
                "seeds: return a value for every unit, NaN to leave one out"
            )
        measure = benchmark.metrics[metric]
        left_out = any(np.isnan(each[metric].values).all() for each in by_seed.values())
        if left_out and (measure.lower_is_better or not measure.unit):
            raise ConfigError(
                f"{type(benchmark).__name__}.values: no unit of {metric!r} for {inputs.entry.id} has a value: return "
                "a number, or leave the metric out"
            )
    scored = [metric for metric in first if inputs.entry.kind.scores(metric)]
    drawn = inputs.entry.trained or inputs.entry.kind.drawn
    results = {
        metric: _summary({seed: each[metric] for seed, each in by_seed.items()}, inputs.options["metrics"], drawn=drawn)
        for metric in scored
    }
    for name, result in results.items():
        result |= _in_part(result, about.get("in_part", {})) | _measure(benchmark, inputs.entry, name)
    write_sealed(
        path,
        {
            "metrics": results,
            "source": benchmark.scoring_source(),
            "bootstrap": {key: inputs.options["metrics"][f"bootstrap_{key}"] for key in ("samples", "seed")},
            "shown_in": "" if type(benchmark).in_time is Benchmark.in_time else benchmark.dataset(inputs.release),
            "selection": "; ".join(filter(None, [about["selection"], chosen])),
            "status": "needs" if about["needs"] else "present",
            "needs": about["needs"],
        },
    )


def _in_part(result: Mapping[str, Any], absent_s: Mapping[str, float]) -> dict[str, Any]:
    """Return the number of damaged videos of a result and their missing seconds; a ranking's pool has all videos."""
    ranked = result["n_videos"] is None
    absent = [seconds for video, seconds in absent_s.items() if ranked or video in result["per_video"]]
    return {"n_in_part": len(absent), "absent_s": sum(absent)} if absent else {}


def _measure(benchmark: Benchmark[Any], entry: Any, name: str) -> dict[str, Any]:
    """Return what a metric is, and the options with which it was computed."""
    metric = benchmark.metrics[name]
    return {
        "title": metric.title,
        "definition": metric.definition,
        "options": {key: benchmark.options["metrics"][key] for key in benchmark.options_of(entry, name)},
        "split": benchmark.split(entry, name),
    }


def _seed(prediction: Any) -> int:
    seed: int = prediction.seed
    return seed


def _summary(by_seed: Mapping[int, Values], options: Config, *, drawn: bool) -> dict[str, Any]:
    first = next(iter(by_seed.values()))
    if not first.drawn:
        by_seed, drawn = dict([next(iter(by_seed.items()))]), False
    table = np.array([each.values for each in by_seed.values()], dtype=np.float64)
    weights = np.ones(table.shape[1]) if first.weights is None else np.asarray(first.weights, dtype=np.float64)
    means = np.nan_to_num(_mean(table, weights, axis=1))
    whole = [each.corpus for each in by_seed.values()]
    per_seed = np.array([mean if each is None else each for mean, each in zip(means, whole, strict=True)])
    units = _mean(table, np.ones(len(table))[:, None], axis=0)
    per_video, of_video = _by_video(first.videos, units, weights)
    low, high = bootstrap_interval(
        list(per_video.values()),
        samples=options["bootstrap_samples"],
        seed=options["bootstrap_seed"],
        weights=None if len({*of_video}) == 1 else of_video,
    )
    return {
        "n_videos": len(per_video),
        "units": first.units,
        **first.counts,
        "value": float(per_seed.mean()),
        "sd": float(per_seed.std(ddof=1)) if len(per_seed) > 1 else None,
        "draw_sd": first.draw_sd,
        "ci": [low, high] if first.interval and first.corpus is None and not np.isnan(low) else None,
        "seeds": list(by_seed) if drawn else [],
        "per_seed": per_seed.tolist(),
        "per_video": per_video,
        "weights": dict(zip(per_video, of_video, strict=True)),
    }


def _mean(table: NDArray[np.float64], weights: NDArray[np.float64], *, axis: int) -> NDArray[np.float64]:
    """Return weighted means, ignoring NaN; NaN if all values are NaN."""
    there = np.where(np.isnan(table), 0, weights)
    total = there.sum(axis=axis)
    return np.asarray((np.nan_to_num(table) * there).sum(axis=axis) / np.where(total > 0, total, np.nan))


def _by_video(
    videos: Sequence[str], units: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[dict[str, float], list[float]]:
    """Return each video's mean over the units that are not left out, and its weight."""
    kept = ~np.isnan(units)
    place: dict[str, int] = {}
    of = [place.setdefault(video, len(place)) for video, here in zip(videos, kept, strict=True) if here]
    total = np.bincount(of, weights[kept])
    means = np.bincount(of, units[kept] * weights[kept]) / total
    return dict(zip(place, means.tolist(), strict=True)), total.tolist()

"""The values of each activity, step and task: article grounding in both readings and by match, and step recall."""

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from stepline.benchmark import Values
from stepline.benchmarks.htstep.inputs import HtstepInputs
from stepline.benchmarks.htstep.kinds import Found
from stepline.benchmarks.htstep.metrics import PARTS, SPLITS, THRESHOLDS
from stepline.datasets import htstep
from stepline.datasets.htstep import Recording, Step
from stepline.metrics.grounding import (
    GroundingScores,
    MatchType,
    PredictedSegments,
    Reading,
    TrueSegments,
    article_grounding,
    match_type_grounding,
)
from stepline.metrics.step_recall import StepHits, average_recall, random_subsets, step_hits, subset_recall

PLACES = {"03": 0, "05": 2, "07": 4}
"""The positions of the thresholds with their own columns among the thresholds of the mean."""
assert tuple(PLACES) == THRESHOLDS
READINGS: Mapping[str, Reading] = {"": "official", "query_": "per_query"}


def values(inputs: HtstepInputs, made: Sequence[Found]) -> Mapping[str, Values]:
    """Return each metric of one seed's predictions. Unavailable videos are left out and counted."""
    if inputs.release == "crosstask":
        return _crosstask(inputs, made)
    found: dict[str, Values] = {}
    for split in (each for each in SPLITS if each in inputs.benchmark.labelled):
        listed = [each for each in inputs.truth(split) if each.labelled]
        said = {each.video: each for each in made if each.split == split}
        there = [each for each in listed if each.video in said]
        if there:
            counts = {"n_videos": len(there), "n_listed": len(listed)}
            found |= {f"{split}_{name}": each for name, each in _grounding(inputs, there, said, counts).items()}
    return found


def counted(part: str) -> Mapping[str, float]:
    """Return the number of videos of a part and, if all its labels are available, of its segments and activities."""
    about = htstep.statistics(*PARTS[part])
    found = {"videos": float(about.videos)}
    if {*PARTS[part]} <= {*htstep.labelled_splits()}:
        found |= {"segments": float(about.segments), "activities": float(about.activities)}
    return found


def _grounding(
    inputs: HtstepInputs, listed: Sequence[Recording], said: Mapping[str, Found], counts: Mapping[str, int | None]
) -> dict[str, Values]:
    """Return the metrics of a split's videos: the average precision of activities, and the hits of steps."""
    true, predicted = _true(listed), _predicted([said[each.video] for each in listed])
    articles = _articles(inputs.steps)
    found: dict[str, Values] = {}
    for prefix, reading in READINGS.items():
        scores = article_grounding(true, predicted, articles, reading=reading)
        found |= {f"{prefix}{name}": each for name, each in _average(scores, counts).items()}
        if not prefix:
            found["dropped"] = _dropped(scores, len(predicted.video), counts)
    if true.full is not None:
        kinds: dict[MatchType, bool] = {"full": True, "partial": False}
        for kind, full in kinds.items():
            if {full} in _matches(true):
                found[f"{kind}_map"] = _average(match_type_grounding(true, predicted, articles, kind), counts)["map"]
    for order in ("", "ordered_"):
        if all(said[each.video].times_s for each in listed):
            found[f"{order}r1"] = _recall(listed, said, order, counts)
    return found


def _true(listed: Sequence[Recording]) -> TrueSegments:
    """Return the true segments of videos. full: None if a segment has no match."""
    segments = [(each.video, segment) for each in listed for segment in each.segments]
    matches = [segment.match for _, segment in segments]
    return TrueSegments(
        video=[video for video, _ in segments],
        start_s=[segment.start_s for _, segment in segments],
        end_s=[segment.end_s for _, segment in segments],
        step=[segment.step for _, segment in segments],
        full=[match == "full" for match in matches] if all(matches) else None,
    )


def _matches(true: TrueSegments) -> list[set[bool]]:
    """Return, for each step that a video shows, the set of whether its segments are full matches."""
    found: dict[tuple[str, int], set[bool]] = {}
    for video, step, full in zip(true.video, true.step, true.full or (), strict=True):
        found.setdefault((video, step), set()).add(full)
    return list(found.values())


def _predicted(said: Sequence[Found]) -> PredictedSegments:
    rows = [
        (each.video, *bounds, step, score)
        for each in said
        for bounds, step, score in zip(each.segments, each.steps, each.scores, strict=True)
    ]
    return PredictedSegments(*map(list, zip(*rows, strict=True))) if rows else PredictedSegments([], [], [], [], [])


def _articles(steps: Mapping[int, Step]) -> dict[int, tuple[str, str]]:
    return {step.id: (step.activity, step.variation) for step in steps.values()}


def _average(scores: GroundingScores, counts: Mapping[str, int | None], units: str = "activities") -> dict[str, Values]:
    """Return the average precision of each activity, at single thresholds and over all of them."""
    columns = {f"map_{name}": scores.ap[:, place] for name, place in PLACES.items()} | {"map": scores.ap.mean(axis=1)}
    return {
        name: Values(values=100 * column, videos=scores.activities, units=units, counts=counts)
        for name, column in columns.items()
    }


def _dropped(scores: GroundingScores, n: int, counts: Mapping[str, int | None]) -> Values:
    """Return the share of predictions that the released evaluation ignores, in percent."""
    share = 100 * sum(scores.dropped) / n if n else 0.0
    return Values(values=np.array([share]), videos=["all"], units="splits", counts=counts, interval=False)


def _recall(
    listed: Sequence[Recording], said: Mapping[str, Found], order: str, counts: Mapping[str, int | None]
) -> Values:
    """Return whether the time of each shown step is in one of its segments."""
    videos, found = list[str](), list[float]()
    for each in listed:
        hits = _hits(each, said[each.video], order, "challenge")
        shown = hits.hit[hits.present]
        videos += [each.video] * len(shown)
        found += (100.0 * shown).tolist()
    return Values(values=np.array(found), videos=videos, counts={**counts, "n_samples": len(found)})


def _hits(each: Recording, said: Found, order: str, rule: Literal["challenge", "crosstask"]) -> StepHits:
    """Return which steps of a video are found."""
    place = {step: k for k, step in enumerate(said.article)}
    segments = [(segment.start_s, segment.end_s) for segment in each.segments]
    steps = [place[segment.step] for segment in each.segments]
    return step_hits(said.ordered_s if order else said.times_s, segments, steps, rule=rule)


def _crosstask(inputs: HtstepInputs, made: Sequence[Found]) -> dict[str, Values]:
    """Return recalls over random subsets of CrossTask's videos, and the average precision of each task.

    Subsets without an available video are left out; with fewer than two subsets there is no recall.
    """
    options, pool = inputs.options["metrics"], inputs.pool
    listed: Sequence[Recording] = [each for each in inputs.truth("crosstask") if each.video in pool[each.activity]]
    said = {(each.article, each.video): each for each in made}
    there = [each for each in listed if (each.steps, each.video) in said]
    if not there:
        return {}
    counts: dict[str, int | None] = {"n_videos": len(there), "n_listed": len(listed)}
    subsets = random_subsets(
        pool,
        evaluated=options["crosstask_evaluated"],
        seed=options["crosstask_seed"],
        n=options["crosstask_subsets"],
        per_task=options["crosstask_videos"],
    )
    found = {}
    for order in ("", "ordered_"):
        hits = {
            (each.activity, each.video): _hits(each, said[each.steps, each.video], order, "crosstask") for each in there
        }
        shown = {key for key, each in hits.items() if each.present.any()}
        used = [subset for subset in subsets if subset & shown]
        if len(used) < 2:
            continue
        evaluated = shown.intersection(set().union(*used))
        whole, drawn = average_recall({key: hits[key] for key in evaluated}), subset_recall(hits, used)
        found[f"crosstask_{order}r1"] = Values(
            values=100 * whole.recall, videos=whole.tasks, units="tasks", counts=counts, corpus=100 * drawn.mean
        )
        found[f"crosstask_{order}r1_sd"] = Values(
            values=100 * drawn.recall,
            videos=[f"subset {number}" for number in range(len(used))],
            units="subsets",
            counts=counts,
            corpus=100 * drawn.sd,
        )
    true, predicted = _true(there), _predicted([said[each.steps, each.video] for each in there])
    keyed = {(each.steps, each.video): f"{each.activity} {each.video}" for each in there}
    true = true._replace(video=[keyed[each.steps, each.video] for each in there for _ in each.segments])
    times = [(keyed[each.steps, each.video], len(said[each.steps, each.video].steps)) for each in there]
    predicted = predicted._replace(video=[key for key, n in times for _ in range(n)])
    scores = article_grounding(true, predicted, _articles(inputs.steps))
    return found | {"crosstask_map": _average(scores, counts, "tasks")["map"]}

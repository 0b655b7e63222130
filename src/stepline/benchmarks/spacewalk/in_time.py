"""A recording's steps and predicted steps over time."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from stepline.benchmark.timed import FALSE_POSITIVE, HIT, MISS, WRONG_LABEL, InTime, Timed
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.kinds import Choice
from stepline.datasets.studies import RETRIEVAL

RULE = (
    "one answer per sample, shown up to the middle between adjacent samples; hit: the labelled step; wrong label: "
    "another step; false positive: a step, but the label is Irrelevant; miss: Irrelevant, but the label is a step"
)


def in_time(inputs: SpacewalkInputs, video: str, made: Choice | None) -> InTime | None:
    """Return a recording's steps and the answers to its samples; None for answers of retrieval."""
    if made and inputs.entry.task == RETRIEVAL:
        return None
    recording = inputs.annotation.recordings[video]
    names = [step.caption for step in recording.steps]
    truth = tuple(Timed(each.start_s, each.end_s, names[each.label]) for each in recording.segments if each.label > 0)
    if made is None:
        return InTime(truth=truth)
    items = {item.id: item for item in inputs.items(made.split)[video]}
    answers = sorted(
        (items[id_].t_s, items[id_].label, chosen) for id_, chosen in zip(made.ids, made.chosen, strict=True)
    )
    times_s = [time_s for time_s, *_ in answers]
    bounds_s = [0.0, *((a + b) / 2 for a, b in pairwise(times_s)), recording.duration_s]
    spans = (
        Timed(start_s, end_s, *_answer(names, label, chosen))
        for (start_s, end_s), (_, label, chosen) in zip(pairwise(bounds_s), answers, strict=True)
    )
    return InTime(truth=truth, predicted=tuple(_joined(spans)), rule=RULE)


def _answer(names: list[str], label: int, chosen: int) -> tuple[str, str]:
    """Return the text of an answer and its verdict; the verdict is "" for a guess and for a correct Irrelevant."""
    if chosen < 0:
        return "a guess", ""
    if label == chosen:
        return names[chosen] if chosen else "", HIT if chosen else ""
    if not chosen:
        return names[label], MISS
    return names[chosen], WRONG_LABEL if label else FALSE_POSITIVE


def _joined(spans: Iterator[Timed]) -> Iterator[Timed]:
    """Yield the labelled spans; adjacent spans with equal label and verdict are merged."""
    last: Timed | None = None
    for span in spans:
        if last and (last.label, last.verdict) == (span.label, span.verdict):
            last = replace(last, end_s=span.end_s)
            continue
        if last and last.label:
            yield last
        last = span
    if last and last.label:
        yield last

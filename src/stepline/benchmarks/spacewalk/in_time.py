"""Recognised steps of a recording over time."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from stepline.benchmark.timed import FALSE_POSITIVE, HIT, MISS, WRONG_LABEL, InTime, Timed
from stepline.benchmarks.spacewalk.inputs import SpacewalkInputs
from stepline.benchmarks.spacewalk.kinds import Choice
from stepline.datasets.studies import RETRIEVAL

RULE = (
    "one answer per sample, which stands up to the middle between it and the next: hit: the step of the label; wrong "
    "label: another step; false positive: a step where the label is Irrelevant; miss: Irrelevant where it is a step"
)


def in_time(inputs: SpacewalkInputs, video: str, made: Choice | None) -> InTime | None:
    """Return the steps of a recording and the answers at its samples; None of retrieval, and of another video."""
    recording = inputs.annotation.recordings.get(video)
    if recording is None or (made and inputs.entry.task == RETRIEVAL):
        return None
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
    """Return what an answer says, and the verdict on it; "" on a guess, and where both say Irrelevant."""
    if chosen < 0:
        return "a guess", ""
    if label == chosen:
        return names[chosen] if chosen else "", HIT if chosen else ""
    if not chosen:
        return names[label], MISS
    return names[chosen], WRONG_LABEL if label else FALSE_POSITIVE


def _joined(spans: Iterator[Timed]) -> Iterator[Timed]:
    """Yield what is said, neighbours that say the same as one."""
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

"""The moments, steps and captions of HiREST over time."""

from dataclasses import replace

from stepline.benchmark.timed import InTime, Timed, judge
from stepline.benchmarks.hirest.inputs import HirestInputs
from stepline.benchmarks.hirest.kinds import Found
from stepline.datasets import hirest
from stepline.datasets.hirest import Pair

SPLITS = ("train", "val", "test_507", "test")


def in_time(inputs: HirestInputs, video: str, made: Found | None) -> InTime | None:
    """Return the true moment or its steps, with the predicted ones; None for a ranking of videos."""
    pairs = [pair for split in SPLITS for pair in hirest.load(split) if pair.video == video and pair.clippable]
    pair = next((pair for pair in pairs if pair.bounds_s), None)
    if pair is None or (made and made.moment is None and made.segments is None and made.sentences is None):
        return None
    steps, moment = [Timed(step.start_s, step.end_s, step.caption) for step in pair.steps], _moment(pair)
    if made is None:
        return InTime(truth=(*moment, *steps))
    if made.moment is not None:
        return judge(moment, [Timed(made.moment[0], made.moment[1], made.query)], labelled=False)
    if made.segments is not None:
        return judge(steps, [Timed(span[0], span[1]) for span in made.segments], labelled=False)
    captions = [replace(step, label=said) for step, said in zip(steps, made.sentences or (), strict=False)]
    return InTime(truth=tuple(steps), predicted=tuple(captions), rule="captions of given steps: no errors are marked")


def _moment(pair: Pair) -> list[Timed]:
    return [Timed(*pair.bounds_s, pair.query)] if pair.bounds_s else []

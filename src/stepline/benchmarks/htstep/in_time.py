"""The grounded steps of HT-Step over time."""

from stepline.benchmark.timed import InTime, Timed, judge
from stepline.benchmarks.htstep.inputs import HtstepInputs
from stepline.benchmarks.htstep.kinds import Found
from stepline.benchmarks.htstep.metrics import SPLITS

RANKED = "for each step, the segment with the highest score"
SECONDS = "for each step, the second in which it is most likely"


def in_time(inputs: HtstepInputs, video: str, made: Found | None) -> InTime | None:
    """Return the annotated segments and, for each step, the best predicted segment or, without segments, its second."""
    splits = ["crosstask"] if inputs.release == "crosstask" else ["train", *SPLITS]
    units = [unit for split in splits for unit in inputs.truth(split) if unit.video == video and unit.labelled]
    if not units:
        return None
    truth = [Timed(each.start_s, each.end_s, _name(inputs, each.step)) for unit in units for each in unit.segments]
    if made is None:
        return judge(truth, [], labelled=True)
    best: dict[int, tuple[float, ...]] = {}
    for step, span in zip(made.steps, made.segments, strict=True):
        best.setdefault(step, span)
    if best:
        said = [Timed(span[0], span[1], _name(inputs, step)) for step, span in best.items()]
        found, how = judge(truth, said, labelled=True), RANKED
    else:
        seconds = zip(made.article, made.times_s, strict=True)
        said = [Timed(time_s, time_s + 1, _name(inputs, step)) for step, time_s in seconds]
        found, how = judge(truth, said, labelled=True, least_iou=0), SECONDS
    return InTime(truth=found.truth, predicted=found.predicted, rule=f"{how}; {found.rule}")


def _name(inputs: HtstepInputs, step: int) -> str:
    return inputs.steps[step].headline if step in inputs.steps else f"step {step}"

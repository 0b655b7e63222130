"""A video's true and recognised steps over time."""

from stepline.benchmark import InTime, Timed
from stepline.benchmark.timed import HIT, WRONG_LABEL, in_order
from stepline.benchmarks.segments.inputs import SegmentInputs
from stepline.benchmarks.segments.recognition import Recognised
from stepline.datasets.schema import SPLITS


def in_time(inputs: SegmentInputs, video: str, made: Recognised | None) -> InTime | None:
    """Return the segments of a video with their true steps and, after a prediction, the recognised ones."""
    segments = [each for split in SPLITS for each in inputs.truth(split) if each.video == video]
    truth = [
        Timed(each.start_s, each.end_s, text)
        for each, text in zip(segments, inputs.texts([each.step for each in segments]), strict=True)
    ]
    steps = made.steps if made else ()
    predicted = [
        Timed(true.start_s, true.end_s, text, HIT if step == true.step else WRONG_LABEL)
        for true, step, text in zip(segments, steps, inputs.texts(steps), strict=bool(made))
    ]
    rule = "hit: the step of the segment; wrong label: another"
    return InTime(truth=in_order(truth), predicted=in_order(predicted), rule=rule) if truth else None

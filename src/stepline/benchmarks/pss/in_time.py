"""A video's annotated and predicted segments over time."""

from collections.abc import Iterable

from stepline.benchmark.timed import InTime, Timed, judge
from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.kinds import Segmentation


def in_time(inputs: PssInputs, video: str, made: Segmentation | None) -> InTime | None:
    """Return the annotated and predicted segments; sentences are shown but do not affect the verdicts."""
    for split in ("test", "val", "train"):
        for true in inputs.truth(split):
            if true.video == video:
                said = _timed(made.segments, made.sentences or [""] * len(made.segments)) if made else []
                return judge(_timed(true.segments, true.sentences), said, labelled=False)
    return None


def _timed(segments: Iterable[tuple[float, float]], sentences: Iterable[str]) -> list[Timed]:
    return [Timed(start_s, end_s, said) for (start_s, end_s), said in zip(segments, sentences, strict=True)]

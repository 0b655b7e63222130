"""Equal parts of a video, a baseline that sees only the duration (Sec. 5.2, baselines)."""

from collections.abc import Iterator, Sequence
from math import ceil
from pathlib import Path

from stepline.benchmark import Method
from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.kinds import Segmentation
from stepline.datasets.pss import Procedure
from stepline.metrics.segments import uniform, whole_seconds

PARTS = {"youcook2": 8, "tasty": 10}
"""The average number of segments of a video (Sec. 5.2, baseline i)."""
SEGMENT_S = {"youcook2": 19.6, "tasty": 6.0}
"""The average duration of a segment, in seconds (Sec. 5.2, baseline ii)."""


class Uniform(Method[PssInputs, Segmentation]):
    """Equal parts; their number follows from the setting ``by``.

    ``segments``: the data set's average number of segments. ``duration``: from the average duration of a segment.
    ``count``: the annotated number, an oracle input.
    """

    def predict(self, inputs: PssInputs, fits: Sequence[Path]) -> Iterator[Segmentation]:
        """Yield the parts of each video."""
        for split in inputs.entry.splits:
            for procedure in inputs.used(split):
                n = {
                    "segments": PARTS[inputs.release],
                    "duration": ceil(procedure.duration_s / SEGMENT_S[inputs.release]),
                    "count": len(procedure.segments),
                }[inputs.entry.settings["by"]]
                yield Segmentation(seed=0, split=split, video=procedure.video, segments=parts(inputs, procedure, n))


def parts(inputs: PssInputs, procedure: Procedure, n: int) -> tuple[tuple[float, float], ...]:
    """Return n equal parts of a video, in seconds, with its length by the option ``duration``."""
    exact = inputs.options["duration"] == "exact"
    total_s = procedure.duration_s if exact else whole_seconds(procedure.duration_s)
    return tuple((float(start_s), float(end_s)) for start_s, end_s in uniform(total_s, n))

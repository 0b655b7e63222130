"""Equal parts of a video, which see nothing but its duration (Sec. 5.2, baselines)."""

from collections.abc import Iterator
from math import ceil
from pathlib import Path

from stepline.benchmarks.pss.entries import PARTS, SEGMENT_S
from stepline.benchmarks.pss.material import Material
from stepline.benchmarks.pss.methods import Method
from stepline.benchmarks.pss.predictions import Prediction
from stepline.datasets.pss import Procedure
from stepline.metrics.segments import uniform, whole_seconds


def make(material: Material, fits: list[Path]) -> Iterator[tuple[int, Method]]:
    """Yield the baseline. by: ``segments``, ``duration`` or ``count``, the annotated number, which is an oracle."""
    by = material.entry.settings["by"]

    def predict(seed: int, split: str, procedure: Procedure) -> Prediction:
        n = {
            "segments": PARTS[material.dataset],
            "duration": ceil(procedure.duration_s / SEGMENT_S[material.dataset]),
            "count": len(procedure.segments),
        }[by]
        return Prediction(seed=seed, split=split, video=procedure.video, segments=parts(material, procedure, n))

    yield 0, predict


def parts(material: Material, procedure: Procedure, n: int) -> tuple[tuple[float, float], ...]:
    """Return n equal parts of a video's length, by the configured rule of what that is."""
    exact = material.plan.study_config["duration"] == "exact"
    total_s = procedure.duration_s if exact else whole_seconds(procedure.duration_s)
    return tuple((float(start_s), float(end_s)) for start_s, end_s in uniform(total_s, n))

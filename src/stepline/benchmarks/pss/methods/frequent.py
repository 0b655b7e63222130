"""The most frequent training sentence for every segment, which sees no video. Ties: the first by its characters."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from stepline.benchmarks.pss.entries import PARTS
from stepline.benchmarks.pss.material import Material
from stepline.benchmarks.pss.methods import Method
from stepline.benchmarks.pss.methods.uniform import parts
from stepline.benchmarks.pss.predictions import Prediction
from stepline.datasets.pss import Procedure


def make(material: Material, fits: list[Path]) -> Iterator[tuple[int, Method]]:
    """Yield the baseline. proposals: ``ground_truth``, or ``uniform``, the average number of equal parts."""
    counts = Counter(sentence for procedure in material.used("train") for sentence in procedure.sentences)
    sentence = min(counts, key=lambda each: (-counts[each], each))
    given = material.entry.settings["proposals"] == "ground_truth"

    def predict(seed: int, split: str, procedure: Procedure) -> Prediction:
        segments = procedure.segments if given else parts(material, procedure, PARTS[material.dataset])
        return Prediction(
            seed=seed, split=split, video=procedure.video, segments=segments, sentences=(sentence,) * len(segments)
        )

    yield 0, predict

"""The most frequent training sentence for each segment, a blind baseline. Ties: the first sentence in sort order."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from stepline.benchmark import Method
from stepline.benchmarks.pss.inputs import PssInputs
from stepline.benchmarks.pss.kinds import Segmentation
from stepline.benchmarks.pss.methods.uniform import PARTS, parts


class MostFrequent(Method[PssInputs, Segmentation]):
    """The setting ``proposals`` is ``ground_truth``, or ``uniform`` for the average number of equal parts."""

    def predict(self, inputs: PssInputs, fits: Sequence[Path]) -> Iterator[Segmentation]:
        """Yield the sentence for the segments of each video."""
        counts = Counter(sentence for procedure in inputs.used("train") for sentence in procedure.sentences)
        sentence = min(counts, key=lambda each: (-counts[each], each))
        given = inputs.entry.settings["proposals"] == "ground_truth"
        for split in inputs.entry.splits:
            for procedure in inputs.used(split):
                segments = procedure.segments if given else parts(inputs, procedure, PARTS[inputs.release])
                yield Segmentation(
                    seed=0,
                    split=split,
                    video=procedure.video,
                    segments=segments,
                    sentences=(sentence,) * len(segments),
                )

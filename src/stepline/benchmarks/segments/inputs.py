"""The inputs of step recognition: segments, and the steps of each procedure."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from stepline.benchmarks.segments.recognition import Segment, StepRecognition
from stepline.datasets.schema import SPLITS
from stepline.runs.inputs import Inputs


class SegmentInputs(Inputs[StepRecognition]):
    """The inputs of an entry on one release."""

    def load(self, split: str) -> Iterable[Segment]:
        """Return the segments of a split."""
        return self.benchmark.checked_segments(self.release, split)

    @cached_property
    def steps(self) -> Mapping[str, Sequence[str]]:
        """The steps of each procedure, in the order in which train, then val, then test first show them."""
        found: dict[str, dict[str, None]] = {}
        for each in (each for split in SPLITS for each in self.load(split)):
            found.setdefault(each.procedure, {})[each.step] = None
        return {procedure: list(steps) for procedure, steps in found.items()}

    def texts(self, steps: Sequence[str]) -> list[str]:
        """Return the texts of steps."""
        return [self._texts.get(step, step) for step in steps]

    @cached_property
    def _texts(self) -> Mapping[str, str]:
        return self.benchmark.texts(self.release)

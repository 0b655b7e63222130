"""What methods and scores of Spacewalk-18 read: the recordings, samples and text of one release."""

from collections.abc import Iterable
from dataclasses import replace
from functools import cached_property

from stepline import paths
from stepline.availability import read_manifest
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.items import Item, read_items
from stepline.benchmarks.spacewalk.text import RecordingText, load_text
from stepline.datasets.schema import Recording, Release, Split
from stepline.features.bank import Bank
from stepline.features.text import TextStore
from stepline.needs import Need
from stepline.runs.inputs import Inputs, Stage


class SpacewalkInputs(Inputs[Spacewalk]):
    """One release of a study as an entry sees it."""

    @cached_property
    def annotation(self) -> Release:
        """The release, checked."""
        return self.benchmark.released.load(self.release)

    @cached_property
    def parts(self) -> "tuple[SpacewalkInputs, ...]":
        """What the entry itself reads, then what those read that its settings name, in their order."""
        parts = self.benchmark.parts(self.entry)[1:]
        return (self, *(SpacewalkInputs(self.benchmark, replace(self.job, entry=part)) for part in parts))

    def load(self, split: str) -> Iterable[Recording]:
        """Return the recordings of a split."""
        return [self.annotation.recordings[video] for video in self.annotation.splits[split]]  # type: ignore[index]

    def recordings(self, split: str) -> list[str]:
        """Return the ids of the recordings of a split, and of the subset, of which all that the entry reads is there."""
        return [each.video for each in self.used(split)]

    def items(self, split: Split) -> dict[str, list[Item]]:
        """Return the samples of a split by recording."""
        return read_items(self.annotation, self.entry.task, split)

    def text(self, video: str) -> RecordingText:
        """Return the text of a recording from the configured source."""
        raise NotImplementedError

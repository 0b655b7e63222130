"""Inputs of Spacewalk-18's methods and scores: recordings, samples, text and features of one release."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from stepline import paths
from stepline.availability import read_manifest
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.benchmarks.spacewalk.items import Item, read_items
from stepline.benchmarks.spacewalk.text import RecordingText, load_text
from stepline.datasets.schema import Recording, Release
from stepline.datasets.studies import STEP_RECOGNITION
from stepline.features.bank import Bank
from stepline.features.text import TextStore
from stepline.needs import Need
from stepline.runs.inputs import Inputs, Stage


class SpacewalkInputs(Inputs[Spacewalk]):
    """The inputs of an entry on one release of a study."""

    @cached_property
    def annotation(self) -> Release:
        """The release, checked."""
        return self.benchmark.released.load(self.release)

    @cached_property
    def parts(self) -> "tuple[SpacewalkInputs, ...]":
        """The inputs of the entry itself, then of the entries that its settings name, in order."""
        parts = self.benchmark.parts(self.entry)[1:]
        return (self, *(SpacewalkInputs(self.benchmark, replace(self.job, entry=part)) for part in parts))

    @cached_property
    def method(self) -> Any:
        """The entry's method. It caches results for recordings across window lengths."""
        return self.benchmark.method(self.entry.kind)()

    def load(self, split: str) -> Iterable[Recording]:
        """Return the recordings of a split."""
        return [self.annotation.recordings[video] for video in self.annotation.splits[split]]  # type: ignore[index]

    def recordings(self, split: str) -> list[str]:
        """Return the ids of the split's recordings that are in the subset and have all inputs of the entry."""
        return [each.video for each in self.used(split)]

    def has(self, unit: Recording) -> bool:
        """Return whether a recording has all inputs of the entry and its parts."""
        return all(part._has(unit.video) for part in self.parts)

    def _has(self, video: str) -> bool:
        heard = not self.benchmark.recognised(self.entry) or self._transcribed.get(video, {}).get("status") == "present"
        return heard and (not self.entry.backbone or video in self.bank.videos)

    @cached_property
    def _transcribed(self) -> Mapping[str, Mapping[str, Any]]:
        made = [path for path in self.benchmark.pipeline.speech.manifests if path.exists()]
        return {video: record for path in made for video, record in read_manifest(path).items()}

    def missing(self, stage: Stage) -> tuple[Need, ...]:
        """Return the unmet needs of a stage, including splits without samples.

        A split on which step recognition is fitted must have samples of steps.
        """
        if needs := super().missing(stage):
            return needs
        used = [split for split in self.splits(stage) if split == "test" or self.entry.trained]
        place = f"{self.release}/{self.entry.task}"
        return tuple(Need("samples", f"{place}/{split}") for split in used if not self._is_sampled(split))

    def absent(self, _splits: Sequence[str]) -> tuple[Need, ...]:
        """Return the need if no recording is available: videos, or transcripts if speech recognition failed."""
        read = any(self.benchmark.recognised(part.entry) for part in self.parts)
        failed = read and any(each["status"] == "failed" and "failures" in each for each in self._transcribed.values())
        return (Need("transcripts" if failed else "videos", self.benchmark.name),)

    def _is_sampled(self, split: str) -> bool:
        items = self.items(split)
        fitted = split != "test" and self.entry.task == STEP_RECOGNITION
        return any(item.label > 0 or not fitted for video in self.recordings(split) for item in items[video])

    # Inputs of a recording

    def items(self, split: str) -> dict[str, list[Item]]:
        """Return the samples of a split by recording."""
        if split not in self._items:
            self._items[split] = read_items(self.annotation, self.entry.task, split)  # type: ignore[arg-type]
        return self._items[split]

    @cached_property
    def _items(self) -> dict[str, dict[str, list[Item]]]:
        return {}

    def text(self, video: str) -> RecordingText:
        """Return the text of a recording from the configured source."""
        if video not in self._texts:
            self._texts[video] = load_text(self.benchmark, self.annotation, video)
        return self._texts[video]

    @cached_property
    def _texts(self) -> dict[str, RecordingText]:
        return {}

    def embeddings(self, video: str) -> TextStore:
        """Return the text embeddings of a recording from the entry's encoder or its text tower."""
        if video not in self._stores:
            spec = self.benchmark.pipeline.features.spec_of(self.benchmark.texts_by(self.entry))
            self._stores[video] = TextStore(paths.text_store(self.benchmark.name, video, spec), spec)
        return self._stores[video]

    @cached_property
    def _stores(self) -> dict[str, TextStore]:
        return {}

    @cached_property
    def bank(self) -> Bank:
        """The features of the study's videos from the entry's backbone."""
        features = self.benchmark.pipeline.features
        return Bank.open(features.stores(self.entry.backbone), features.spec_of(self.entry.backbone)).fill()

    @property
    def read(self) -> Iterable[Bank]:
        """The banks of the entry and its parts, except entries that decode videos."""
        return [part.bank for part in self.parts if part.entry.backbone and not part.entry.kind.decoded]

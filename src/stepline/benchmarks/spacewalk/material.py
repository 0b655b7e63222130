"""What methods work on: the recordings, samples and text of one release under one configuration."""

from dataclasses import dataclass
from functools import cached_property

from stepline import paths
from stepline.availability import read_manifest
from stepline.benchmarks.spacewalk.entries import Entry
from stepline.benchmarks.spacewalk.items import Item, read_items
from stepline.benchmarks.spacewalk.plan import Plan
from stepline.benchmarks.spacewalk.text import RecordingText, load_text
from stepline.config import Config
from stepline.datasets.schema import Release, Split
from stepline.features.bank import Bank
from stepline.features.text import TextStore


@dataclass(frozen=True)
class Material:
    """One release of a study as an entry sees it."""

    plan: Plan
    release: Release
    entry: Entry

    @property
    def study_config(self) -> Config:
        """The study's part of the configuration."""
        return self.plan.study_config

    @cached_property
    def parts(self) -> "tuple[Material, ...]":
        """The material of the entry itself, then of those that its settings name, in their order."""
        return (self, *(Material(self.plan, self.release, part) for part in self.plan.parts(self.entry)[1:]))

    def listed(self, split: Split) -> tuple[str, ...]:
        """Return the recordings of a split, less what the subset leaves out."""
        return tuple(video for video in self.release.splits[split] if video in self.plan.videos)

    def recordings(self, split: Split) -> tuple[str, ...]:
        """Return the recordings of a split for which all that the entry sees is there."""
        return tuple(video for video in self.listed(split) if self._has(video))

    def _has(self, video: str) -> bool:
        return all(part._part_has(video) for part in self.parts)

    def _part_has(self, video: str) -> bool:
        seen = not self.entry.backbone or video in self.bank.videos
        heard = not self.plan.recognised(self.entry) or self._transcribed.get(video, {}).get("status") == "present"
        return seen and heard

    @property
    def absent(self) -> str:
        """What the entry needs where no recording is there: videos, or transcripts where the recogniser failed."""
        recognised = any(self.plan.recognised(part.entry) for part in self.parts)
        heard = self._transcribed.values() if recognised else ()
        failed = any(made["status"] == "failed" and "failures" in made for made in heard)
        return f"{'transcripts' if failed else 'videos'}:{self.plan.study.name}"

    @cached_property
    def _transcribed(self) -> dict[str, dict[str, object]]:
        made = [path for path in self.plan.pipeline.speech.manifests if path.exists()]
        return {video: record for path in made for video, record in read_manifest(path).items()}

    def items(self, split: Split) -> dict[str, list[Item]]:
        """Return the samples of a split by recording."""
        return read_items(self.release, self.entry.task, split)

    def text(self, video: str) -> RecordingText:
        """Return the text of a recording from the configured source."""
        if video not in self._texts:
            source = self.study_config["transcripts"]
            engine = self.plan.pipeline.speech.engine
            self._texts[video] = load_text(self.plan.study, self.release, video, source=source, engine=engine)
        return self._texts[video]

    @cached_property
    def _texts(self) -> dict[str, RecordingText]:
        return {}

    def embeddings(self, video: str) -> TextStore:
        """Return the text embeddings of a recording by the entry's encoder, or its text tower."""
        if video not in self._stores:
            spec = self.plan.pipeline.features.spec_of(self.plan.texts_by(self.entry))
            self._stores[video] = TextStore(paths.text_store(self.plan.study.name, video, spec), spec)
        return self._stores[video]

    @cached_property
    def _stores(self) -> dict[str, TextStore]:
        return {}

    @cached_property
    def bank(self) -> Bank:
        """The features of the study's videos by the entry's backbone."""
        features = self.plan.pipeline.features
        return Bank.open(features.folders(self.entry.backbone), features.spec_of(self.entry.backbone))

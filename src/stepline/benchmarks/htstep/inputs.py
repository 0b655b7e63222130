"""What methods of HT-Step read: videos with the steps of an article, features, and what is said."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from stepline.asr import transcript
from stepline.availability import read_manifest
from stepline.benchmark import Job
from stepline.benchmarks.htstep.benchmark import Htstep
from stepline.benchmarks.htstep.metrics import SPLITS
from stepline.datasets import htstep, htstep_transfer
from stepline.datasets.htstep import Recording, Step
from stepline.datasets.htstep_transfer import Sentence
from stepline.errors import ConfigError
from stepline.features.bank import Bank
from stepline.footage import Footage
from stepline.needs import Need, unique
from stepline.runs.inputs import Inputs, Stage


@dataclass(frozen=True, kw_only=True)
class Narrated:
    """A video in which something is said, and nothing annotated."""

    video: str
    sentences: Sequence[Sentence]


class HtstepInputs(Inputs[Htstep]):
    """The release as an entry sees it."""

    def load(self, split: str) -> Iterable[Recording | Narrated]:
        """Return the annotated videos of a split, of ``crosstask`` and ``coin`` all, and the narrated ones."""
        if split == "narrations":
            return self._narrated()
        if split in ("crosstask", "coin"):
            return getattr(htstep_transfer, split)()  # type: ignore[no-any-return]
        return htstep.load(split, self.benchmark.match)

    def _narrated(self) -> list[Narrated]:
        """Return the videos in which something is said, without those on which methods are evaluated."""
        videos = htstep.split_videos()
        evaluated = {video for split in SPLITS for video in videos[split]}
        return [
            Narrated(video=video, sentences=said)
            for video, said in self.subtitles.items()
            if said and video not in evaluated
        ]

    def missing(self, stage: Stage) -> tuple[Need, ...]:
        """Return what keeps a stage from computing.

        It is what an entry before is missing, what the entry itself is trained on, or videos of all splits that are
        predicted: those of one split are enough.
        """
        before = [Job(release="v1", entry=part) for part in self.benchmark.parts(self.entry)[1:2]]
        found = [need for job in before for need in HtstepInputs(self.benchmark, job).missing("fit")]
        trained = {"htstep": "train"}.get(on := self.benchmark.trained_on(self.entry), on)
        found += self._without([trained]) if trained else []
        found += self._without(self.predicted) if stage == "predict" else []
        if stage == "predict" and self.entry.features and not found and not self.evaluated:
            found.append(Need("release", "htstep/candidates"))
        return unique(found)

    def _without(self, splits: Sequence[str]) -> Sequence[Need]:
        """Return what is missing where none of some splits has a video that can be used."""
        if any(map(self.used, splits)):
            return ()
        chosen = [split for split in splits if self.chosen(split)]
        return self.absent(chosen) if chosen else [Need("split", split) for split in splits]

    def absent(self, splits: Sequence[str]) -> tuple[Need, ...]:
        """Return what is missing where no unit of some splits has all that is read: videos, features or transcripts."""
        listed, dataset = {unit.video for split in splits for unit in self.chosen(split)}, self._dataset(splits[0])
        if "speech" in self.entry.kind.sees and listed.isdisjoint(self.subtitles):
            return (Need("transcripts", dataset),)
        footage, (name,) = self.benchmark.footage[dataset], self.benchmark.features(self.entry)
        if footage.is_backbone(name) or listed & self._banks[dataset].videos:
            return (Need("videos", dataset),)
        return (Need("features", f"{name}/{dataset}"),)

    @property
    def predicted(self) -> list[str]:
        """The splits that the entry predicts."""
        return ["crosstask"] if self.release == "crosstask" else list(self.entry.splits)

    @property
    def evaluated(self) -> list[Recording]:
        """The videos of the predicted splits whose features are there, and whose article is known."""
        return [unit for split in self.predicted for unit in self.used(split) if unit.steps]

    def chosen(self, split: str) -> list[Any]:
        """Return the units of the subset's videos, of train those with segments; of another data set all."""
        other = split == "coin" or (split == "narrations" and self.benchmark.narrated != "htstep")
        units = list(self.truth(split)) if other else super().chosen(split)
        return [unit for unit in units if split != "train" or unit.labelled]

    def used(self, split: str) -> list[Any]:
        """Return the units of which all that the entry reads is there."""
        bank = self.bank(split) if self.benchmark.features(self.entry) else None
        said = {*self.subtitles} if "speech" in self.entry.kind.sees else None
        units = [
            unit
            for unit in self.chosen(split)
            if (bank is None or unit.video in bank) and (said is None or unit.video in said)
        ]
        if bank is not None:
            bank.fetch(unit.video for unit in units)
        return units

    def bank(self, split: str) -> Bank:
        """Return the features of a split's videos, a row a second from 0 s on.

        Raises ConfigError where rows are of other times, StoreError where they are of parts of videos.
        """
        return self._banks[self._dataset(split)]

    @property
    def read(self) -> Iterable[Bank]:
        """The bank of the videos that are predicted."""
        return [self.bank(self.predicted[0])] if self.benchmark.features(self.entry) else []

    def _dataset(self, split: str) -> str:
        """Return the data set that has the videos of a split."""
        other = {"coin": "coin", "narrations": self.benchmark.narrated}
        return other.get(split, self.benchmark.dataset(self.release))

    @cached_property
    def _banks(self) -> "_Banks":
        return _Banks(self)

    @cached_property
    def steps(self) -> Mapping[int, Step]:
        """The steps of the release's taxonomy, of CrossTask its tasks', by id."""
        if self.release == "crosstask":
            return htstep_transfer.texts_of("crosstask")
        return htstep.taxonomy()

    @cached_property
    def subtitles(self) -> Mapping[str, Sequence[Sentence]]:
        """What is said in each video that has a transcript: in those that are predicted, or in narrations."""
        name = self.benchmark.narrated if self.entry.trained else "htstep"
        footage = self.benchmark.footage[name]
        if self.options["transcripts"] == "released":
            listed = [video.id for video in footage.dataset.videos()]
            return htstep_transfer.narrations(listed)
        speech = footage.pipeline.speech
        made = {video: each for path in speech.manifests for video, each in read_manifest(path).items()}
        return {
            video: tuple(
                Sentence(start_s=line.start_s, end_s=line.end_s, text=line.text)
                for line in transcript.read(speech.folder / f"{video}.parquet")
            )
            for video, each in made.items()
            if each["status"] == "present"
        }

    def begin(self, seed: int) -> Path | None:
        """Return the checkpoint that a fit begins with: of the same seed, or of the first where there is none of it."""
        parts = self.benchmark.parts(self.entry)
        if len(parts) == 1:
            return None
        job, seeds = Job(release="v1", entry=parts[1]), parts[1].seeds
        return self.benchmark.fits(job)[seeds.index(seed) if seed in seeds else 0]


class _Banks(dict[str, Bank]):
    """The banks of an entry's features by data set, opened when they are asked for."""

    def __init__(self, inputs: HtstepInputs) -> None:
        super().__init__()
        self.inputs = inputs

    def __missing__(self, dataset: str) -> Bank:
        benchmark = self.inputs.benchmark
        (name,) = benchmark.features(self.inputs.entry)
        bank = self[dataset] = open_bank(benchmark.footage[dataset], name)
        return bank


def open_bank(footage: Footage, name: str) -> Bank:
    """Return the bank of features of a data set, a row a second; raise ConfigError or StoreError where it is none."""
    from stepline.features.bank import open_named

    bank = open_named(footage, name).fill()
    bank.check_whole()
    if bank.hop_s not in (0, 1):
        raise ConfigError(
            f"features {name!r} have a row each {bank.hop_s:g} s; HT-Step reads one a second: name other features"
        )
    return bank

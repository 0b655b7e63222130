"""The inputs of HT-Step's methods: videos with the steps of an article, features and transcripts."""

from collections.abc import Collection, Iterable, Mapping, Sequence
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
from stepline.needs import Need, in_order
from stepline.runs.inputs import Inputs, Stage


@dataclass(frozen=True, kw_only=True)
class Narrated:
    """A video with speech and without annotation."""

    video: str
    sentences: Sequence[Sentence]


class HtstepInputs(Inputs[Htstep]):
    """The inputs of one entry."""

    def load(self, split: str) -> Iterable[Recording | Narrated]:
        """Return the annotated videos of a split, all videos of ``crosstask`` and ``coin``, or the narrated videos."""
        if split == "narrations":
            return self._narrated()
        if split in ("crosstask", "coin"):
            return getattr(htstep_transfer, split)()  # type: ignore[no-any-return]
        return htstep.load(split, self.benchmark.match)

    def _narrated(self) -> list[Narrated]:
        """Return the videos with speech, without the evaluated ones."""
        videos = htstep.split_videos()
        evaluated = {video for split in SPLITS for video in videos[split]}
        return [
            Narrated(video=video, sentences=said)
            for video, said in self.subtitles.items()
            if said and video not in evaluated
        ]

    def missing(self, stage: Stage) -> tuple[Need, ...]:
        """Return the unmet needs of a stage.

        These are the needs of the next entry in the chain, of the training data, and of the predicted splits. One split
        with videos is enough.
        """
        before = [Job(release="v1", entry=part) for part in self.benchmark.parts(self.entry)[1:2]]
        found = [need for job in before for need in HtstepInputs(self.benchmark, job).missing("fit")]
        trained = {"htstep": "train"}.get(on := self.benchmark.trained_on(self.entry), on)
        found += self._without([trained]) if trained else []
        found += self._without(self.predicted) if stage == "predict" else []
        if stage == "predict" and self.entry.features and not found and not self.evaluated:
            found.append(Need("release", "htstep/candidates"))
        return in_order(found)

    def _without(self, splits: Sequence[str]) -> Sequence[Need]:
        """Return what is missing if none of the splits has a usable video."""
        if any(map(self.used, splits)):
            return ()
        chosen = [split for split in splits if self.chosen(split)]
        return self.absent(chosen) if chosen else [Need("split", split) for split in splits]

    def absent(self, splits: Sequence[str]) -> tuple[Need, ...]:
        """Return what is missing if no unit of the splits has all inputs: videos, features or transcripts."""
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
        return ["crosstask"] if self.release == "crosstask" else super().predicted

    @property
    def evaluated(self) -> list[Recording]:
        """The usable videos of the predicted splits with a known article."""
        return [unit for split in self.predicted for unit in self.used(split) if unit.steps]

    def chosen(self, split: str) -> list[Any]:
        """Return the units of the subset: in train, units with segments; in other data sets, all units."""
        other = split == "coin" or (split == "narrations" and self.benchmark.narrated != "htstep")
        units = list(self.truth(split)) if other else super().chosen(split)
        return [unit for unit in units if split != "train" or unit.labelled]

    def used(self, split: str) -> list[Any]:
        """Return the units for which all inputs of the entry are available."""
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
        """Return the features of a split's videos, with one row per second from 0 s on.

        Raises ConfigError for another rate, StoreError if the features cover only parts of videos.
        """
        return self._banks[self._dataset(split)]

    @property
    def read(self) -> Iterable[Bank]:
        """The bank of the predicted videos."""
        return [self.bank(self.predicted[0])] if self.benchmark.features(self.entry) else []

    def _dataset(self, split: str) -> str:
        """Return the data set with the videos of a split."""
        other = {"coin": "coin", "narrations": self.benchmark.narrated}
        return other.get(split, self.benchmark.dataset(self.release))

    @cached_property
    def _banks(self) -> "_Banks":
        return _Banks(self)

    @property
    def pool(self) -> Mapping[str, Collection[str]]:
        """The videos of each CrossTask task from which subsets are drawn."""
        return htstep_transfer.crosstask_pool(self.options["metrics"]["crosstask_validation"])

    @cached_property
    def steps(self) -> Mapping[int, Step]:
        """The steps of the release's taxonomy or of CrossTask's tasks, by id."""
        if self.release == "crosstask":
            return htstep_transfer.texts_of("crosstask")
        return htstep.taxonomy()

    @cached_property
    def subtitles(self) -> Mapping[str, Sequence[Sentence]]:
        """The transcript of each video that has one: of narrations if the entry is trained, otherwise of HT-Step."""
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
        """Return the initial checkpoint of a fit: of the same seed if there is one, otherwise of the first seed."""
        parts = self.benchmark.parts(self.entry)
        if len(parts) == 1:
            return None
        job, seeds = Job(release="v1", entry=parts[1]), parts[1].seeds
        return self.benchmark.fits(job)[seeds.index(seed) if seed in seeds else 0]


class _Banks(dict[str, Bank]):
    """The banks of an entry's features by data set, opened on first use."""

    def __init__(self, inputs: HtstepInputs) -> None:
        super().__init__()
        self.inputs = inputs

    def __missing__(self, dataset: str) -> Bank:
        benchmark = self.inputs.benchmark
        (name,) = benchmark.features(self.inputs.entry)
        bank = self[dataset] = open_bank(benchmark.footage[dataset], name)
        return bank


def open_bank(footage: Footage, name: str) -> Bank:
    """Return a data set's bank of features with one row per second; raise ConfigError or StoreError otherwise."""
    from stepline.features.opening import open_named

    bank = open_named(footage, name).fill()
    bank.check_whole()
    if bank.hop_s not in (0, 1):
        raise ConfigError(
            f"features {name!r} have one row per {bank.hop_s:g} s; HT-Step needs one per second: name other features"
        )
    return bank

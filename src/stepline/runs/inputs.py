"""What methods and scores read: one release under one configuration, as an entry sees it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from stepline.availability import Record, read_availability
from stepline.benchmark import Benchmark, Job
from stepline.config import Config
from stepline.features.bank import Bank, open_named
from stepline.features.resize import resize
from stepline.footage import Footage
from stepline.media.timeline import absent_s
from stepline.needs import Need

AnyBenchmark = TypeVar("AnyBenchmark", bound=Benchmark[Any])
Stage = Literal["fit", "predict"]


@dataclass(frozen=True)
class Inputs(Generic[AnyBenchmark]):
    """What a job reads; a benchmark's own class says what its truth is."""

    benchmark: AnyBenchmark
    job: Job

    @property
    def entry(self) -> Any:
        """The entry."""
        return self.job.entry

    @property
    def release(self) -> str:
        """The name of the release."""
        return self.job.release

    @property
    def options(self) -> Config:
        """The benchmark's part of the configuration."""
        return self.benchmark.options

    @property
    def spec(self) -> str:
        """The 8 hex digits of what decides the entry's predictions."""
        return self.benchmark.spec(self.job)

    # Truth

    def load(self, split: str) -> Iterable[Any]:
        """Return the annotated units of a split, each with a ``video``; a benchmark's own class says which."""
        raise NotImplementedError

    def truth(self, split: str) -> Sequence[Any]:
        """Return all units of a split, in the released order."""
        if split not in self._truth:
            self._truth[split] = list(self.load(split))
        return self._truth[split]

    @cached_property
    def _truth(self) -> dict[str, Sequence[Any]]:
        return {}

    def used(self, split: str) -> list[Any]:
        """Return the units of the subset's videos of which all that the entry reads is there."""
        units = [unit for unit in self.chosen(split) if self.has(unit)]
        for bank in self.banks if units else ():
            bank.fetch(unit.video for unit in units)
        return units

    def chosen(self, split: str) -> list[Any]:
        """Return the units of the subset's videos, the released ones where there is no subset."""
        return [unit for unit in self.truth(split) if self._is_chosen(unit.video)]

    def has(self, unit: Any) -> bool:
        """Return whether all that the entry reads of a unit is there."""
        if self.entry.kind.decoded and self.video_file(unit.video) is None:
            return False
        return all(unit.video in bank for bank in self.banks)

    def video_file(self, video: str) -> Path | None:
        """Return the file of a video, None where it is not there."""
        record = self._availability.get(video)
        there = record is not None and record.status == "present" and Path(record.path).exists()
        return Path(record.path) if record is not None and there else None

    @cached_property
    def _availability(self) -> dict[str, Record]:
        records = self.footage.pipeline.videos.availability
        return {video: record for path in records for video, record in read_availability(path).items()}

    def _is_chosen(self, video: str) -> bool:
        return self.options["subset"] is None or video in self._chosen

    @cached_property
    def _chosen(self) -> frozenset[str]:
        benchmark = self.benchmark
        return benchmark.chosen(benchmark.datasets.get(benchmark.dataset(self.release), benchmark.released))

    def splits(self, stage: Stage) -> list[str]:
        """Return the splits that a stage reads: where predictions are evaluated, and those that the entry sees."""
        evaluated = [] if stage == "fit" else list(self.entry.splits)
        seen = [each.split for each in self.benchmark.seen(self.entry) if each.split]
        return list(dict.fromkeys([*evaluated, *seen, *(["val"] if self.entry.trained else [])]))

    def missing(self, stage: Stage) -> tuple[Need, ...]:
        """Return what keeps a stage from computing: a split that the subset, or what is absent, leaves empty."""
        splits = self.splits(stage)
        if empty := [split for split in splits if not self.chosen(split)]:
            return tuple(Need("split", split) for split in empty)
        without = [split for split in splits if not self.used(split)]
        return self.absent(without) if without else ()

    def absent(self, splits: Sequence[str]) -> tuple[Need, ...]:
        """Return what is missing where no unit of some splits has all that is read.

        It is videos, or the release's videos in an imported bank.
        """
        listed = {unit.video for split in splits for unit in self.truth(split)}
        banks = dict(zip(self.benchmark.features(self.entry), self.banks, strict=True))
        dataset = self.benchmark.dataset(self.release)
        strange = [name for name in self.imported if listed and not listed & banks[name].videos]
        return tuple(Need("features", f"{name}/{dataset}") for name in strange) or (Need("videos", dataset),)

    @property
    def device(self) -> str:
        """Where models run, ``cpu`` or ``cuda``; raise StoreError where ``features.device`` is not there."""
        from stepline.features.network import device_of

        return device_of(self.benchmark.config["features"]).type

    # Features

    @property
    def footage(self) -> Footage:
        """The videos of the release's data set."""
        return self.benchmark.footage[self.benchmark.dataset(self.release)]

    @cached_property
    def banks(self) -> Sequence[Bank]:
        """The banks of the entry's features, in the configured order."""
        return [self.open_bank(name) for name in self.benchmark.features(self.entry)]

    def open_bank(self, name: str) -> Bank:
        """Return the bank of features by their name; in a gap of a damaged video stand the nearest rows."""
        return open_named(self.footage, name).fill()

    @property
    def read(self) -> Iterable[Bank]:
        """The banks that predictions are made from."""
        return self.banks

    @cached_property
    def in_part(self) -> dict[str, float]:
        """The seconds that are absent of each damaged video; a method that reads videos themselves adds its own."""
        return {video: absent_s(damaged.gaps) for bank in self.read for video, damaged in bank.damaged.items()}

    @property
    def imported(self) -> list[str]:
        """Those of the entry's features that are imported banks, not backbones."""
        return [name for name in self.benchmark.features(self.entry) if not self.footage.is_backbone(name)]

    def resized(self, video: str, length: int) -> NDArray[np.float32]:
        """Return the (length, D) features of a video: each bank's rows resized, then put side by side."""
        return np.concatenate([resize(bank[video], length) for bank in self.banks], axis=1, dtype=np.float32)

    @property
    def dimension(self) -> int:
        """D of the features, all banks together."""
        return sum(bank.dimension for bank in self.banks)

"""The inputs of methods and scores: one release with one configuration, for one entry."""

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
from stepline.features.bank import Bank
from stepline.features.opening import open_named
from stepline.features.resize import resize
from stepline.footage import Footage
from stepline.media.timeline import absent_s
from stepline.needs import Need

AnyBenchmark = TypeVar("AnyBenchmark", bound=Benchmark[Any])
Stage = Literal["fit", "predict"]


@dataclass(frozen=True)
class Inputs(Generic[AnyBenchmark]):
    """The inputs of a job. Each benchmark's subclass defines the ground truth."""

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
        """The benchmark's section of the configuration."""
        return self.benchmark.options

    @property
    def spec(self) -> str:
        """The cache key of the entry's predictions, 8 hex digits."""
        return self.benchmark.spec(self.job)

    # Truth

    def load(self, split: str) -> Iterable[Any]:
        """Return the annotated units of a split, each with a ``video``. Subclasses define the type of a unit."""
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
        """Return the units of the subset's videos for which all inputs of the entry exist."""
        units = [unit for unit in self.chosen(split) if self.has(unit)]
        for bank in self.banks if units else ():
            bank.fetch(unit.video for unit in units)
        return units

    def chosen(self, split: str) -> list[Any]:
        """Return the units of the subset's videos, or all released units if there is no subset."""
        return [unit for unit in self.truth(split) if self._is_chosen(unit.video)]

    def has(self, unit: Any) -> bool:
        """Return whether all inputs of the entry exist for a unit."""
        if self.entry.kind.decoded and self.video_file(unit.video) is None:
            return False
        return all(unit.video in bank for bank in self.banks)

    def video_file(self, video: str) -> Path | None:
        """Return the file of a video, None if it does not exist."""
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
        """Return the splits that a stage reads: the evaluated splits and those that the entry uses."""
        evaluated = [] if stage == "fit" else list(self.entry.splits)
        seen = [each.split for each in self.benchmark.seen(self.entry) if each.split]
        return list(dict.fromkeys([*evaluated, *seen, *(["val"] if self.entry.trained else [])]))

    def missing(self, stage: Stage) -> tuple[Need, ...]:
        """Return the needs that block a stage: a split is empty because of the subset or missing inputs."""
        splits = self.splits(stage)
        if empty := [split for split in splits if not self.chosen(split)]:
            return tuple(Need("split", split) for split in empty)
        without = [split for split in splits if not self.used(split)]
        return self.absent(without) if without else ()

    def absent(self, splits: Sequence[str]) -> tuple[Need, ...]:
        """Return the missing inputs if no unit of these splits has all inputs.

        These are videos, or the release's videos in an imported bank.
        """
        listed = {unit.video for split in splits for unit in self.truth(split)}
        banks = dict(zip(self.benchmark.features(self.entry), self.banks, strict=True))
        dataset = self.benchmark.dataset(self.release)
        strange = [name for name in self.imported if listed and not listed & banks[name].videos]
        return tuple(Need("features", f"{name}/{dataset}") for name in strange) or (Need("videos", dataset),)

    @property
    def device(self) -> str:
        """The device of models, ``cpu`` or ``cuda``; raises StoreError if ``features.device`` is not available."""
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
        """Return the bank with this name; gaps of damaged videos are filled with the nearest rows."""
        return open_named(self.footage, name).fill()

    @property
    def read(self) -> Iterable[Bank]:
        """The banks that the predictions depend on."""
        return self.banks

    @cached_property
    def in_part(self) -> dict[str, float]:
        """The missing seconds of each damaged video. Methods that read videos add their own."""
        return {video: absent_s(damaged.gaps) for bank in self.read for video, damaged in bank.damaged.items()}

    @property
    def imported(self) -> list[str]:
        """The names of the entry's features that are imported banks, not backbones."""
        return [name for name in self.benchmark.features(self.entry) if not self.footage.is_backbone(name)]

    def resized(self, video: str, length: int) -> NDArray[np.float32]:
        """Return the (length, D) features of a video: the rows of each bank resized, then concatenated."""
        return np.concatenate([resize(bank[video], length) for bank in self.banks], axis=1, dtype=np.float32)

    @property
    def dimension(self) -> int:
        """The dimension D of the concatenated features."""
        return sum(bank.dimension for bank in self.banks)

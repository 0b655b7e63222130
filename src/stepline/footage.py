"""The features of a benchmark: computed by backbones from its videos, or imported banks."""

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.backbones.registry import FRAME_BACKBONES, presets, towers
from stepline.backbones.sentence import MODELS
from stepline.config import Config
from stepline.datasets.dataset import Dataset
from stepline.errors import ConfigError
from stepline.io import read_json
from stepline.needs import Need
from stepline.pipeline import Demand, Pipeline


def is_backbone(name: str, config: Config) -> bool:
    """Return whether features of this name are computed by a backbone; otherwise they are an imported bank."""
    return ":" in name or name in {*FRAME_BACKBONES, *presets(), *config["backbones"]}


@dataclass(frozen=True)
class _Demand(Demand):
    """The outputs to compute from the videos: features of backbones, predictions that read videos, and other stages."""

    names: tuple[str, ...]
    reading: Callable[[], list[Path]]
    stages: Collection[str]

    @property
    def wants_videos(self) -> bool:
        """Whether features or transcripts are computed, or predictions read videos."""
        return bool(self.names or self.media or self.reading())

    @property
    def backbones(self) -> Sequence[str]:
        """The backbones."""
        return self.names

    def predictions(self) -> list[Path]:
        """Return the predictions that read the videos themselves."""
        return self.reading()


@dataclass(frozen=True)
class Footage:
    """A benchmark's dataset with named features, from backbones or imported banks.

    pipeline: computes the features from the videos. key: the configuration key that lists features. names: the features
    that the tables' entries read.
    """

    pipeline: Pipeline
    key: str
    names: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        config: Config,
        dataset: Dataset,
        key: str,
        names: tuple[str, ...],
        predictions: Callable[[], list[Path]],
        *,
        sound: bool = False,
    ) -> "Footage":
        """Return a dataset of which only features are computed.

        predictions: returns the predictions that read the videos themselves. sound: whether transcripts are computed
        too, from audio.
        """
        backbones = tuple(name for name in names if is_backbone(name, config))
        demand = _Demand(backbones, predictions, ("speech", "features") if sound else ("features",))
        return cls(Pipeline(config, dataset, demand), key, names)

    @property
    def config(self) -> Config:
        """The configuration."""
        return self.pipeline.config

    @property
    def dataset(self) -> Dataset:
        """The dataset."""
        return self.pipeline.dataset

    def is_backbone(self, name: str) -> bool:
        """Return whether the name is a backbone; otherwise it is an imported bank."""
        return is_backbone(name, self.config)

    def check(self, name: str, where: str) -> None:
        """Raise ConfigError if a name at the key ``where`` can be neither a backbone nor an imported bank."""
        if not self.is_backbone(name):
            if name in {*towers(), *MODELS} or not re.fullmatch("[a-z0-9][a-z0-9_.-]*", name):
                raise ConfigError(f"{where}: {name!r} is not allowed; name a backbone or an imported bank")
            return
        try:
            self.missing(name)
            if self.pipeline.features.describes_clips(name):
                raise ConfigError(
                    f"{name!r} describes listed clips; name a backbone that describes each second in `{self.key}`"
                )
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None

    def missing(self, name: str) -> tuple[Need, ...]:
        """Return the needs that are missing before the features can be computed or read."""
        if self.is_backbone(name):
            return self.pipeline.features.missing(name)
        return () if self._imported(name) else (Need("features", f"{name}/{self.dataset.name}"),)

    def record(self, name: str) -> Any:
        """Return the record of the spec that determines the features."""
        if self.is_backbone(name):
            return self.pipeline.features.spec_of(name).record()
        (record,) = self._imported(name)
        return read_json(record)

    def inputs(self, name: str) -> list[Path]:
        """Return the records of the features: a backbone's manifests of all shards, or an imported bank's record."""
        return self.pipeline.features.manifests(name) if self.is_backbone(name) else self._imported(name)

    def stores(self, name: str) -> list[paths.Location]:
        """Return the locations of the features, shard by shard."""
        if self.is_backbone(name):
            return self.pipeline.features.stores(name)
        (record,) = self._imported(name)
        return [paths.located(folder, self.config["features"]["store"]) for folder in self._shards(record.parent)]

    def _shards(self, folder: Path) -> list[Path]:
        """Return the sorted folders of an imported bank's shards of the dataset, from its records and its stores."""
        records = (path.stem.rpartition(".") for path in (folder / "manifests").glob("*.json"))
        recorded = (shard for dataset, _, shard in records if dataset == self.dataset.name)
        found = (path.parents[1].name for path in (folder / self.dataset.name).glob("[0-9]*/features/zarr.json"))
        return [folder / self.dataset.name / shard for shard in sorted({*recorded, *found})]

    def _imported(self, name: str) -> list[Path]:
        """Return the record of the imported bank of this name with the dataset, if there is one.

        Raises ConfigError if there are several.
        """
        found = [path for path in sorted(Path("features", name).glob("*/spec.json")) if self._shards(path.parent)]
        if len(found) > 1:
            banks = " and ".join(str(path.parent / self.dataset.name) for path in found)
            raise ConfigError(f"config: {self.key}: {name!r} matches {banks}: remove all but one")
        return found

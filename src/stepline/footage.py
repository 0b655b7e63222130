"""What stands for a paper's features: backbones, computed from a benchmark's videos, or banks that were imported."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.backbones.registry import FRAME_BACKBONES, presets, towers
from stepline.backbones.sentence import MODELS
from stepline.config import Config
from stepline.errors import ConfigError
from stepline.io import read_json
from stepline.pipeline import Pipeline


def is_backbone(name: str, config: Config) -> bool:
    """Return whether the name of features is that of a backbone; else it is a bank that was imported."""
    return ":" in name or name in {*FRAME_BACKBONES, *presets(), *config["backbones"]}


@dataclass(frozen=True)
class Footage(Pipeline):
    """The videos of a benchmark's data set, as far as features are computed from them.

    key: of the configuration that names features. shown: those of the tables' entries, backbones and imported banks.
    predictions: those that read the videos themselves.
    """

    key: str
    shown: tuple[str, ...]
    predictions: Callable[[], list[Path]]

    @property
    def targets(self) -> tuple[str, ...]:
        """Nothing: features are made for what reads them."""
        return ()

    @property
    def configured_backbones(self) -> Sequence[str]:
        """The backbones among the features that are shown."""
        return [name for name in self.shown if is_backbone(name, self.config)]

    @property
    def lacks(self) -> tuple[str, ...]:
        """What the backbones lack; no speech is recognised."""
        return tuple(dict.fromkeys(item for name in self.configured_backbones for item in self.backbone_lacks(name)))

    @property
    def listed_clips(self) -> dict[str, list[tuple[float, float]]]:
        """No clips are listed."""
        return {}

    @property
    def how_to_list(self) -> str:
        """What to do where a backbone wants listed clips."""
        return f"name a backbone that describes each second in `{self.key}`"

    def made_from_videos(self, shard: str) -> list[Path]:
        """Return the records of a shard's features, and the predictions that read videos: all that is computed."""
        features = [paths.features_manifest(self.name, shard, self.spec_of(name)) for name in self.backbones]
        return [*features, *self.predictions()]

    def drop_inputs(self, shard: str) -> list[Path]:
        """Return the records of all that wants a shard's videos."""
        return self.made_from_videos(shard)

    @property
    def wants_videos(self) -> bool:
        """Whether features are computed, or predictions read videos."""
        return bool(self.configured_backbones or self.predictions())

    def check_records(self) -> None:
        """Read the records of videos where something is computed from them."""
        if self.backbones or self.predictions():
            super().check_records()

    # Features by their names

    def check_features(self, name: str, where: str) -> None:
        """Raise ConfigError where a name at the key ``where`` can be neither a backbone's nor an imported bank's."""
        if not is_backbone(name, self.config):
            if name in {*towers(), *MODELS} or not re.fullmatch("[a-z0-9][a-z0-9_.-]*", name):
                raise ConfigError(f"{where}: {name!r} is not allowed; name a backbone or an imported bank")
            return
        try:
            self.backbone_lacks(name)
            if self.describes_clips(name):
                raise ConfigError(f"{name!r} describes listed clips; {self.how_to_list}")
        except ConfigError as error:
            raise ConfigError(f"{where}: {error}") from None

    def features_lack(self, name: str) -> tuple[str, ...]:
        """Return what is lacking before the features can be read."""
        if is_backbone(name, self.config):
            return self.backbone_lacks(name)
        return () if self._imported(name) else (f"features:{name}/{self.name}",)

    def features_record(self, name: str) -> Any:
        """Return all that decides the features."""
        if is_backbone(name, self.config):
            return self.spec_of(name).record()
        (record,) = self._imported(name)
        return read_json(record)

    def features_inputs(self, name: str) -> list[Path]:
        """Return the records of the features: a backbone's of all shards, or an imported bank's own."""
        if is_backbone(name, self.config):
            spec = self.spec_of(name)
            return [paths.features_manifest(self.name, shard, spec) for shard in self.all_shards]
        return self._imported(name)

    def features_folders(self, name: str) -> list[Path]:
        """Return the folders ``features/<name>/<spec>/<data set>/<shard>`` of the features."""
        if is_backbone(name, self.config):
            spec = self.spec_of(name)
            return [paths.features(self.name, shard, spec) for shard in self.all_shards]
        (record,) = self._imported(name)
        return sorted(path.parent.parent for path in (record.parent / self.name).glob("[0-9]*/features/zarr.json"))

    def _imported(self, name: str) -> list[Path]:
        """Return the record of the imported bank of that name that holds the data set, if there is one.

        Raises ConfigError where there are several.
        """
        found = [
            path
            for path in sorted(Path("features", name).glob("*/spec.json"))
            if any((path.parent / self.name).glob("[0-9]*/features/zarr.json"))
        ]
        if len(found) > 1:
            banks = " and ".join(str(path.parent / self.name) for path in found)
            raise ConfigError(f"config: {self.key}: {name!r} stands for {banks}: remove all but one")
        return found

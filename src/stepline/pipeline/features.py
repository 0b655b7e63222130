"""The features of a data set's videos: their backbones, with missing parts, specs and cache keys."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.backbones import registry
from stepline.config import Config
from stepline.errors import ConfigError, MissingError
from stepline.io import canonical_json, read_json, write_json
from stepline.needs import Need
from stepline.pipeline.demand import Clips, Demand
from stepline.pipeline.videos import Videos, reading
from stepline.spec import ClipSpec, Spec


@dataclass(frozen=True)
class Features:
    """The features that backbones compute from the videos of a data set; also the specs of text encoders by name."""

    config: Config
    videos: Videos
    demand: Demand

    @property
    def configured(self) -> Sequence[str]:
        """The names of the backbones whose features are wanted."""
        return self.demand.backbones

    @property
    def computed(self) -> list[str]:
        """The configured backbones that can run and whose features are read."""
        return [name for name in self.configured if not self.missing(name) and self.demand.reads(name)]

    @property
    def note(self) -> str:
        """A line that names backbones which can run, if none of the wanted ones can; otherwise ""."""
        if not self.configured or not all(map(self.missing, self.configured)):
            return ""
        free = [name for name in registry.FRAME_BACKBONES if name not in self.configured and not self.missing(name)]
        add = f" Add {' or '.join(free)}, which needs no download." if free else ""
        return f"No features: none of the configured backbones can run.{add}"

    @cached_property
    def missing(self) -> Callable[[str], tuple[Need, ...]]:
        """Returns what a backbone still needs before it can run; raises ConfigError if the name is unknown."""
        return cache(lambda backbone: registry.missing(backbone, self.config))

    @cached_property
    def spec_of(self) -> Callable[[str], Spec]:
        """Returns the configured spec of an encoder by its name."""
        return cache(lambda name: registry.spec_of(name, self.config))

    def manifests(self, backbone: str) -> list[Path]:
        """Return the records of a backbone's features, one per shard."""
        spec = self.spec_of(backbone)
        return [paths.features_manifest(self.videos.dataset.name, shard, spec) for shard in self.videos.all_shards]

    def stores(self, backbone: str) -> list[paths.Location]:
        """Return the locations of a backbone's features, one per shard."""
        return [self.store(backbone, shard) for shard in self.videos.all_shards]

    def store(self, backbone: str, shard: str) -> paths.Location:
        """Return the location of a backbone's features of a shard."""
        folder = paths.features(self.videos.dataset.name, shard, self.spec_of(backbone))
        return paths.located(folder, self.config["features"]["store"])

    def note_current(self) -> None:
        """Record next to the features which spec of each backbone is configured, if it has changed."""
        for spec in map(self.spec_of, self.computed):
            path = paths.current_specs(spec.name)
            known = read_json(path) if path.exists() else {}
            if known.get(self.videos.dataset.name) != spec.id:
                write_json(path, known | {self.videos.dataset.name: spec.id})

    # Jobs

    def backbone_of(self, folder: str) -> str:
        """Return the backbone whose features are in ``features/<folder>``; raise ConfigError if there is none."""
        found = {self.spec_of(name).name: name for name in self.computed}
        if folder not in found:
            name, known = self.videos.dataset.name, ", ".join(found) or "none"
            raise ConfigError(f"{name} has no backbone {folder!r}: choose from {known}")
        return found[folder]

    @property
    def networks(self) -> bool:
        """Whether one of the backbones is a network."""
        return any(isinstance(self.spec_of(name), ClipSpec) for name in self.computed)

    def environment(self, backbone: str) -> str:
        """Return the conda environment file of a backbone: the user's own, or the name of one in ``envs/``."""
        own: str = self.config["backbones"].get(backbone, {}).get("env", "")
        if own:
            return os.path.abspath(os.path.expanduser(own))
        reader: str = self.config["media"]["reader"]
        return reader if reader != "pyav" else "networks" if self.networks else "media"

    def params(self, folder: str, shard: str) -> str:
        """Return the cache key of a shard's features in ``features/<folder>``, in addition to their spec, as text."""
        by: dict[str, Any] = {"limits": self.config["media"]["limits"], **reading(self.config, "damaged")}
        backbone = self.backbone_of(folder)
        if self.describes_clips(backbone):
            by["clips"] = self.demand.clip_params(backbone, self.videos.members(shard))
        damages = paths.damages(self.videos.dataset.name, shard, self.spec_of(backbone))
        if damages.exists():
            by["damages"] = read_json(damages)["found"]
        return canonical_json(by)

    # Listed clips

    @property
    def inputs(self) -> list[Path]:
        """Files that must exist before listed clips are known."""
        return self.demand.clip_inputs

    def clips(self, backbone: str) -> Clips:
        """Return the listed clips whose features a backbone computes; none if it samples videos at regular times."""
        return self.demand.clips(backbone) if self.describes_clips(backbone) else {}

    def describes_clips(self, backbone: str) -> bool:
        """Return whether a backbone computes features of listed clips instead of at regular times."""
        try:
            spec = self._resolved(backbone)
        except MissingError:
            return False
        return isinstance(spec, ClipSpec) and spec.placement != "grid"

    @cached_property
    def _resolved(self) -> Callable[[str], Spec]:
        return cache(lambda backbone: registry.resolve(backbone, self.config))

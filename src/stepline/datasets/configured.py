"""The data sets that a configuration knows: the studies, and the user's own."""

import os
from functools import cache

from stepline import paths
from stepline.config import Config
from stepline.datasets import folder, listed, shards
from stepline.datasets.dataset import Dataset
from stepline.datasets.schema import Video
from stepline.datasets.segments import read_segments
from stepline.datasets.studies import STUDIES
from stepline.errors import ConfigError


def dataset(config: Config, name: str) -> Dataset:
    """Return the data set of that name.

    Raises ConfigError where there is none, and where its videos or segments are not as they must be.
    """
    if name in STUDIES:
        return STUDIES[name]
    if name not in config["datasets"]:
        known = ", ".join([*STUDIES, *config["datasets"]])
        raise ConfigError(f"dataset {name!r} is not known; choose from {known}, or add it to `datasets:`")
    declared = config["datasets"][name]
    read = {"folder": folder.videos, "list": listed.videos}[declared["kind"]]

    @cache
    def videos() -> tuple[Video, ...]:
        return _with_lost(name, declared["videos"], read(name, declared["videos"]))

    segments = os.path.expanduser(declared.get("segments", ""))
    if segments:
        read_segments(name, segments, {video.id for video in videos()})
    return Dataset(name=name, title=name, videos=videos, segments=segments)


def _with_lost(name: str, where: str, found: tuple[Video, ...]) -> tuple[Video, ...]:
    """Return ``found`` and, after it, the videos that have a shard and are no longer listed."""
    known = paths.shards(name)
    reason = f"no longer in {where}: put it back, or remove its line from {known} to forget it"
    ids = {video.id for video in found}
    return found + tuple(Video(id=video, lost=reason) for video in shards.read(known) if video not in ids)

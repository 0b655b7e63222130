"""The data sets of a configuration: the public ones, and the user's own."""

import os
from functools import cache

from stepline import paths
from stepline.config import Config
from stepline.datasets import folder, hirest, htstep, listed, oepp, pss, shards
from stepline.datasets.dataset import Dataset
from stepline.datasets.schema import Video
from stepline.datasets.segments import with_splits
from stepline.datasets.studies import STUDIES
from stepline.errors import ConfigError

DATASETS = {**pss.DATASETS, **oepp.DATASETS, **hirest.DATASETS, **htstep.DATASETS}
"""The data sets of benchmarks that are not studies in Spacewalk-18's format."""


def dataset(config: Config, name: str) -> Dataset:
    """Return the data set of that name.

    Raises ConfigError if there is none, or if its videos or segments are invalid.
    """
    if name in STUDIES:
        return STUDIES[name]
    if name in DATASETS:
        return DATASETS[name]
    if name not in config["datasets"]:
        known = ", ".join([*STUDIES, *DATASETS, *config["datasets"]])
        raise ConfigError(
            f"dataset {name!r} is not known; choose from {known}, or use --configfile with a configuration that "
            "has it under `datasets:`"
        )
    declared = config["datasets"][name]
    where = declared["videos"]

    @cache
    def found() -> tuple[tuple[Video, ...], str]:
        if declared["kind"] == "list":
            return listed.videos(name, where), ""
        suffixes = folder.IMAGES if declared["kind"] == "images" else folder.SUFFIXES
        return folder.videos(name, where, shards.read(paths.shards(name)), suffixes)

    @cache
    def videos() -> tuple[Video, ...]:
        return with_splits(name, segments, found()[0]) if segments else found()[0]

    segments = os.path.expanduser(declared.get("segments", ""))
    if segments:
        videos()
    return Dataset(name=name, title=name, videos=videos, left_out=lambda: found()[1], segments=segments)

"""The data sets of a configuration: the public ones, and the user's own."""

import os
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

from stepline import paths
from stepline.config import Config
from stepline.datasets import folder, hirest, htstep, listed, oepp, pss, shards
from stepline.datasets.dataset import Dataset
from stepline.datasets.release import OWN, checked_file
from stepline.datasets.schema import Split, Video
from stepline.datasets.segments import read_segments
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION, STUDIES, Study
from stepline.datasets.studies import study as public
from stepline.errors import ConfigError
from stepline.io import read_json

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
    if "study" in declared and "stages" in declared:
        raise ConfigError(f"config: datasets.{name}.stages: a study's entries determine its stages: remove this key")
    where = declared["videos"]

    @cache
    def found() -> tuple[tuple[Video, ...], str]:
        known = shards.read(paths.shards(name))
        suffixes = folder.IMAGES if declared["kind"] == "images" else folder.SUFFIXES
        if declared["kind"] == "list":
            videos, left_out = listed.videos(name, where), ""
        else:
            videos, left_out = folder.videos(name, where, known, suffixes)
        return _with_lost(name, where, videos, known) if "study" in declared else videos, left_out

    def videos() -> tuple[Video, ...]:
        return found()[0]

    segments = os.path.expanduser(declared.get("segments", ""))
    if segments:
        read_segments(name, segments, {video.id for video in videos()})
    return Dataset(name=name, title=name, videos=videos, left_out=lambda: found()[1], segments=segments)


def is_study(config: Config, name: str) -> bool:
    """Return whether the Spacewalk-18 benchmark runs on that data set: a public one, or the user's own release."""
    return name in STUDIES or "study" in config["datasets"].get(name, {})


def study(config: Config, name: str, release: str | None = None) -> Study:
    """Return the study of that name; raise ConfigError if the study or its release does not exist.

    A user's own study has one release, which `stepline annotation build` writes; raises ReleaseError if it is absent or
    has changed. Its videos have the splits of the release; videos without a split are not part of the release.
    """
    if name in STUDIES or not is_study(config, name):
        return public(name, release)
    if release not in (None, OWN):
        raise ConfigError(f"release {release!r} of {name} is not known; choose from {OWN}")
    folder = Path("datasets", name, OWN)
    split = {video: part for part, videos in _split(folder, name).items() for video in videos}
    listed, samples = dataset(config, name), config["datasets"][name]["samples"]

    def videos() -> tuple[Video, ...]:
        return tuple(replace(video, split=split.get(video.id)) for video in listed.videos())

    return Study(
        name=name,
        title=name,
        videos=videos,
        segments=listed.segments,
        known=(OWN,),
        fps={OWN: read_json(folder / "release.json")["fps"]},
        tasks={OWN: (STEP_RECOGNITION, RETRIEVAL)},
        as_released=frozenset(),
        samples_per_video=samples["per_video"],
        min_distance_s=samples["min_distance_s"],
        boundary_s=samples["boundary_s"],
        release_files=lambda _: (),
    )


def _split(folder: Path, name: str) -> dict[Split, list[str]]:
    found: dict[Split, list[str]] = read_json(checked_file(folder, "tasks/split.json", study=name, name=OWN))
    return found


def _with_lost(name: str, where: str, found: tuple[Video, ...], known: Iterable[str]) -> tuple[Video, ...]:
    """Return ``found`` followed by the ``known`` videos, which have a shard, that are no longer listed.

    This is for studies only: their tables count absent videos of the release.
    """
    reason = f"no longer in {where}: put it back, or remove its line from {paths.shards(name)} to forget it"
    ids = {video.id for video in found}
    return found + tuple(Video(id=video, lost=reason) for video in known if video not in ids)

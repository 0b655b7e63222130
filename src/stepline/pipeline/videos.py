"""The listed videos of a data set: their shards, what is fetched of them, and when again."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from math import ceil
from pathlib import Path

from stepline import paths
from stepline.availability import read_availability
from stepline.config import Config
from stepline.datasets.dataset import Dataset
from stepline.datasets.schema import Video
from stepline.io import canonical_json, read_json
from stepline.media import REVISION, SHOTS_REVISION
from stepline.mirror import mirror_root, stamp
from stepline.pipeline.demand import Demand
from stepline.remembered import remembered
from stepline.spec import digest

DISK_BYTES_PER_S = {"videos": 400_000, "media": 40_000, "extract": 20_000}
"""What a second of video takes on disk: a download of 720 lines; sound and scores; the features of one backbone."""
READING = {"damaged": "partial", "orientation": "upright"}
"""The defaults of options that no job knew once: only others are parameters of jobs."""
HEADERS = 1
"""Of what a record keeps of a video's header: another number has the headers of all videos read anew."""


@dataclass(frozen=True)
class Videos:
    """The videos of one data set under one configuration.

    made: returns the records of all that is computed from a shard's videos themselves.
    """

    config: Config
    dataset: Dataset
    demand: Demand
    made: Callable[[str], list[Path]]

    @cached_property
    def shards(self) -> dict[str, str]:
        """The shard of every listed video."""
        return self.dataset.shards(self.config["shard_hours"])

    @cached_property
    def all_shards(self) -> list[str]:
        """All shards, in order."""
        return sorted(set(self.shards.values()))

    def members(self, shard: str) -> list[Video]:
        """Return the videos of a shard."""
        return self._members.get(shard, [])

    @cached_property
    def _members(self) -> dict[str, list[Video]]:
        members: dict[str, list[Video]] = {}
        for video in self.dataset.videos():
            members.setdefault(self.shards[video.id], []).append(video)
        return members

    def manifests(self, folder: Path) -> list[Path]:
        """Return the records of all shards in the folder of a stage."""
        return [paths.manifest(folder, shard) for shard in self.all_shards]

    @property
    def availability(self) -> list[Path]:
        """The records of what became of the videos of all shards."""
        return [paths.availability(self.dataset.name, shard) for shard in self.all_shards]

    def disk_mb(self, stage: str, shard: str) -> int:
        """Return about how many MB a stage writes for a shard; a video that is only linked takes none."""
        all_s, fetched_s = self._lengths_s(shard)
        return ceil((fetched_s if stage == "videos" else all_s) * DISK_BYTES_PER_S[stage] / 1e6)

    def hours(self, shard: str) -> int:
        """Return about how long the videos of a shard are together, rounded up to hours."""
        return ceil(self._lengths_s(shard)[0] / 3600)

    @cached_property
    def all_hours(self) -> int:
        """About how long all videos are together, rounded up to hours."""
        return ceil(sum(video.length_s for video in self.dataset.videos()) / 3600)

    @cached_property
    def _lengths_s(self) -> Callable[[str], tuple[float, float]]:
        """Returns about how long the videos of a shard are together, and those that are downloaded, in seconds."""

        def lengths_s(shard: str) -> tuple[float, float]:
            lengths = [(video.length_s, video.url and not self._signature(video)) for video in self.members(shard)]
            return sum(length_s for length_s, _ in lengths), sum(length_s for length_s, fetched in lengths if fetched)

        return cache(lengths_s)

    # What is fetched

    @cached_property
    def params(self) -> Callable[[str], str]:
        """Returns the cache key of fetching a shard's videos: what there is of them, and lost files.

        A digest, as Snakemake shows and keeps parameters, and addresses may hold passwords. It is computed once.
        """
        return cache(self._params)

    def _params(self, shard: str) -> str:
        members = self.members(shard)
        found = [[video.id, video.url, video.sha256, self._signature(video)] for video in members]
        by = {"found": found, "again": self.again(shard), "strict": self.config["strict"], "headers": HEADERS}
        spans = [self.demand.span_params.get(video.id) for video in members] if self.annotated else []
        return digest(by | ({"spans": spans} if spans else {}))

    def _signature(self, video: Video) -> str:
        """Return a short text that changes when a video's file appears, changes, goes or may be read or no longer."""
        if video.file:
            return stamp(video.file) if os.access(video.file, os.R_OK) else ""
        return stamp(f"{self._mirror}/{video.path}") if self._mirror else ""

    @cached_property
    def _mirror(self) -> Path | None:
        return mirror_root()

    @property
    def annotated(self) -> bool:
        """Whether only annotated spans of videos are fetched and decoded."""
        return bool(self.config["media"]["spans"] == "annotated")

    @property
    def inputs(self) -> list[Path]:
        """What must be there before videos are looked for."""
        return self.demand.span_inputs if self.annotated else []

    def spans(self) -> dict[str, list[list[float]]]:
        """Return the spans in seconds that are read of each video; of a video without any, the whole is."""
        return self.demand.spans() if self.annotated else {}

    def again(self, shard: str) -> int:
        """Return how often videos of a shard, once there, had to be fetched again, counting now.

        After that fetch the number is the same, so the next run has nothing to do.
        """
        path = paths.fetches(self.dataset.name, shard)
        before: int = read_json(path)["again"] if path.exists() else 0
        return before + self._lost(shard)

    def _lost(self, shard: str) -> bool:
        """Return whether a video that was there, and is to be kept or used, is not."""
        absent = {kept for place, kept in self._present(shard).items() if not os.path.exists(place)}
        return True in absent or (False in absent and self.needed(shard))

    def _present(self, shard: str) -> dict[str, bool]:
        """Return where the videos of a shard stood that came, as their own records say, and whether each is kept."""
        folder = os.fspath(paths.videos(self.dataset.name))
        members = self.members(shard) if os.path.isdir(folder) else []
        records = {video.id: f"{folder}/{video.id}.json" for video in members}

        def read() -> dict[str, bool]:
            there = {video: path for video, path in records.items() if os.path.exists(path)}
            found = [read_availability(path).get(video) for video, path in there.items()]
            return {record.path: record.kept for record in found if record and record.status == "present"}

        return remembered(f"{self.dataset.name}/videos/{shard}", records.values(), read)

    # What is deleted after use

    def needed(self, shard: str) -> bool:
        """Return whether something is still to be computed from a shard's videos."""
        path = paths.dropped(self.dataset.name, shard)
        by = read_json(path)["by"] if path.exists() else None
        return by != media_params(self.config) or not all(path.exists() for path in self.made(shard))

    @property
    def dropped(self) -> list[Path]:
        """The records that shards' videos are deleted, where they are not kept."""
        drops = self.config["media"]["keep"] == "none" and self.demand.drops
        return [paths.dropped(self.dataset.name, shard) for shard in self.all_shards] if drops else []


def media_params(config: Config) -> str:
    """Return what audio and scores must be made again for, as text."""
    return canonical_json({"revision": REVISION, "limits": config["media"]["limits"], **reading(config, *READING)})


def reading(config: Config, *keys: str) -> dict[str, str]:
    """Return those of the options of reading damaged and rotated videos, ``READING``, that are not the default."""
    return {key: config["media"][key] for key in keys if config["media"][key] != READING[key]}


def shots_params(config: Config) -> str:
    """Return what shots must be found again for, besides other scores, as text."""
    return canonical_json({"revision": SHOTS_REVISION, **config["shots"]})

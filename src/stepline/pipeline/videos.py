"""The listed videos of a data set: their shards, and the cache keys of fetching them."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.util import find_spec
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

from stepline import paths
from stepline.availability import HEADERS, read_availability
from stepline.config import Config
from stepline.datasets.dataset import Dataset
from stepline.datasets.schema import Video
from stepline.io import canonical_json, read_json
from stepline.media import REVISION, SHOTS_REVISION
from stepline.mirror import cached_sha256, mirror_root, stamp
from stepline.pipeline.demand import Demand
from stepline.progress import progress
from stepline.remembered import remembered
from stepline.spec import digest

DISK_BYTES_PER_S = {"videos": 400_000, "media": 40_000, "extract": 20_000}
"""Disk use of a second of video: a download in 720p; audio and content scores; the features of one backbone."""
READING = {"damaged": "partial", "orientation": "upright", "track": None}
"""The defaults of options that were added later. Only other values are job parameters: older results stay valid."""


class Came(NamedTuple):
    """A fetched video according to its record.

    stamp, sha256: of its source file. headers: the revision of the record's header fields. spans: whether only spans
    of it are read.
    """

    path: str
    kept: bool
    stamp: str
    sha256: str
    headers: int
    spans: bool


@dataclass(frozen=True)
class Videos:
    """The videos of one data set under one configuration.

    made: returns the records of everything that is computed directly from a shard's videos.
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
        """Return the records in the folder of a stage, one per shard."""
        return [paths.manifest(folder, shard) for shard in self.all_shards]

    @property
    def availability(self) -> list[Path]:
        """The records of the availability of videos, one per shard."""
        return [paths.availability(self.dataset.name, shard) for shard in self.all_shards]

    def disk_mb(self, stage: str, shard: str) -> int:
        """Return the approximate size in MB of the files that a stage writes for a shard; linked videos count 0."""
        all_s, fetched_s = self._lengths_s(shard)
        return ceil((fetched_s if stage == "videos" else all_s) * DISK_BYTES_PER_S[stage] / 1e6)

    def hours(self, shard: str) -> int:
        """Return the approximate total length of a shard's videos, rounded up to hours."""
        return ceil(self._lengths_s(shard)[0] / 3600)

    @cached_property
    def all_hours(self) -> int:
        """The approximate total length of all videos, rounded up to hours."""
        return ceil(sum(video.length_s for video in self.dataset.videos()) / 3600)

    @cached_property
    def _lengths_s(self) -> Callable[[str], tuple[float, float]]:
        """Returns the approximate total length of a shard's videos, and of its downloaded ones, in seconds."""

        def lengths_s(shard: str) -> tuple[float, float]:
            lengths = [(video.length_s, video.url and not self._stamp(video)) for video in self.members(shard)]
            return sum(length_s for length_s, _ in lengths), sum(length_s for length_s, fetched in lengths if fetched)

        return cache(lengths_s)

    # What is fetched

    @cached_property
    def are_here(self) -> bool:
        """Whether a video is here, or was and its results are: fetched, the user's file, or one in the mirror."""
        folder = paths.videos(self.dataset.name)
        files = folder.iterdir() if folder.is_dir() else ()
        if any(not file.name.startswith(".") and file.suffix != ".json" for file in files):
            return True
        places = filter(None, map(self.place, self.dataset.videos()))
        return any(map(os.path.exists, places)) or any(path.exists() for path in self.dropped)

    @cached_property
    def params(self) -> Callable[[str], str]:
        """Returns the cache key of fetching a shard's videos. It is computed once per shard.

        It is a digest because Snakemake prints and stores parameters, and URLs may contain passwords.
        """
        return cache(self._params)

    def _params(self, shard: str) -> str:
        members, came = self.members(shard), self.came(shard)
        stamps = self._stamps(shard, came)
        found = [[video.id, video.url, video.sha256, stamps[video.id]] for video in members]
        by = {"found": found, "again": self._again(shard, came), "strict": self.config["strict"], "headers": 1}
        spans = [self.demand.span_params.get(video.id) for video in members] if self.annotated else []
        return digest(by | ({"spans": spans} if spans else {}))

    def stamps(self, shard: str) -> dict[str, str]:
        """Return a stamp for each video of a shard, from the size and modification time of its local file.

        The stamp changes if the file appears, changes, disappears or becomes readable; it is "" without a readable
        file. If only the modification time differs from the record and the bytes are the same, it is the recorded
        stamp, so that nothing is recomputed.
        """
        return self._stamps(shard, self.came(shard))

    def _stamps(self, shard: str, came: Mapping[str, Came]) -> dict[str, str]:
        stamps = {video.id: self._stamp(video) for video in self.members(shard)}
        touched = {
            video.id: self.place(video)
            for video in self.members(shard)
            if video.id in came and _only_time_differs(stamps[video.id], came[video.id].stamp)
        }

        def read() -> dict[str, str]:
            files = progress(touched.values(), what=f"{self.dataset.name} shard {shard}: touched files", unit="files")
            return {file: cached_sha256(Path(file)) for file in files}

        if touched:
            with suppress(OSError):  # the job reports the unreadable file
                found = remembered(f"{self.dataset.name}/touched/{shard}", touched.values(), read)
                same = {video for video, file in touched.items() if found.get(file) == came[video].sha256}
                stamps |= {video: came[video].stamp for video in same}
        return stamps

    def _stamp(self, video: Video) -> str:
        place = self.place(video)
        return stamp(place) if place and os.access(place, os.R_OK) else ""

    def place(self, video: Video) -> str:
        """Return the path of a video that needs no download, the user's or the mirror's file; "" if there is none."""
        return video.file or (f"{self._mirror}/{video.path}" if self._mirror else "")

    @cached_property
    def _mirror(self) -> Path | None:
        return mirror_root()

    @property
    def annotated(self) -> bool:
        """Whether only annotated spans of videos are decoded."""
        return bool(self.config["media"]["spans"] == "annotated")

    @property
    def inputs(self) -> list[Path]:
        """Files that must exist before videos are fetched."""
        return self.demand.span_inputs if self.annotated else []

    def spans(self) -> dict[str, list[list[float]]]:
        """Return the spans of each video to read, in seconds; a video without spans is read whole."""
        return self.demand.spans() if self.annotated else {}

    def again(self, shard: str) -> int:
        """Return how often lost or outdated videos of a shard had to be fetched again, including now if any is.

        The number stays the same after that fetch, so the next run has nothing to do.
        """
        return self._again(shard, self.came(shard))

    def _again(self, shard: str, came: Mapping[str, Came]) -> int:
        path = paths.fetches(self.dataset.name, shard)
        before: int = read_json(path)["again"] if path.exists() else 0
        absent = {video.kept for video in came.values() if not os.path.exists(video.path)}
        lost = True in absent or (False in absent and self.needed(shard))
        return before + (lost or self._outdated(shard, came))

    def _outdated(self, shard: str, came: Mapping[str, Came]) -> bool:
        """Return whether an earlier version read another stream of a file, or a file that is refused now.

        Earlier versions downloaded only the spans that are read: such a file is refused.
        """
        doubtful = (video.path for video in came.values() if 0 < video.headers < HEADERS or video.spans)
        older = [path for path in doubtful if os.path.exists(path)]
        if not older or find_spec("av") is None:
            return False

        def read() -> bool:
            from stepline.media.headers import reads_first_streams
            from stepline.media.process import Limits

            files = progress(older, what=f"{self.dataset.name} shard {shard}: headers", unit="videos")
            return not reads_first_streams(map(Path, files), Limits(**self.config["media"]["limits"]))

        return remembered(f"{self.dataset.name}/headers-{HEADERS}/{shard}", older, read)

    def came(self, shard: str) -> dict[str, Came]:
        """Return the fetched videos of a shard, from the videos' records."""
        folder = os.fspath(paths.videos(self.dataset.name))
        members = self.members(shard) if os.path.isdir(folder) else []
        records = {video.id: f"{folder}/{video.id}.json" for video in members}

        def read() -> dict[str, Came]:
            there = {video: path for video, path in records.items() if os.path.exists(path)}
            found = [read_availability(path).get(video) for video, path in there.items()]
            return {
                each.video: Came(each.path, each.kept, each.stamp, each.sha256, each.headers, bool(each.spans))
                for each in found
                if each and each.status == "present"
            }

        known = remembered(f"{self.dataset.name}/videos/{shard}", records.values(), read)
        return {video: Came(*came) for video, came in known.items()}

    # What is deleted after use

    def needed(self, shard: str) -> bool:
        """Return whether any result from a shard's videos is still missing."""
        path = paths.dropped(self.dataset.name, shard)
        by = read_json(path)["by"] if path.exists() else None
        return by != media_params(self.config) or not all(path.exists() for path in self.made(shard))

    @property
    def dropped(self) -> list[Path]:
        """The records of deleted videos, one per shard; none if videos are kept."""
        drops = self.config["media"]["keep"] == "none" and self.demand.drops
        return [paths.dropped(self.dataset.name, shard) for shard in self.all_shards if drops and self.made(shard)]


def _only_time_differs(stamp: str, other: str) -> bool:
    """Return whether two stamps have the same size and different modification times."""
    size, of_file, _ = stamp.partition("-")
    return bool(of_file) and stamp != other and other.startswith(f"{size}-")


def media_params(config: Config) -> str:
    """Return the cache key of audio and content scores, as text."""
    return canonical_json({"revision": REVISION, "limits": config["media"]["limits"], **reading(config, *READING)})


def reading(config: Config, *keys: str) -> dict[str, Any]:
    """Return the given options of ``READING`` whose values are not the default."""
    return {key: config["media"][key] for key in keys if config["media"][key] != READING[key]}


def shots_params(config: Config) -> str:
    """Return the cache key of shots, in addition to their content scores, as text."""
    return canonical_json({"revision": SHOTS_REVISION, **config["shots"]})

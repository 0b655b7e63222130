"""The pipeline of a data set: which jobs its videos have, and what decides the result of each.

The workflow asks and runs; nothing is computed here, and nothing heavy is imported.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from math import ceil
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.asr import weights as recognisers
from stepline.asr.engines import lacking, recogniser
from stepline.availability import Record, read_availability, read_manifest
from stepline.backbones import weights as backbones
from stepline.backbones.registry import lacking as lacking_backbone
from stepline.backbones.registry import resolve, spec_of
from stepline.config import Config
from stepline.datasets.configured import dataset
from stepline.datasets.dataset import Dataset
from stepline.datasets.schema import Video
from stepline.datasets.segments import read_segments
from stepline.errors import ConfigError, MissingError
from stepline.io import canonical_json, read_json
from stepline.media import REVISION as MEDIA_REVISION
from stepline.media import SHOTS_REVISION
from stepline.media.spans import merged
from stepline.mirror import Wanted, signature
from stepline.spec import ClipSpec, Spec, digest

DISK_BYTES_PER_S = {"videos": 400_000, "media": 40_000, "extract": 20_000}
"""What a second of video takes on disk: a download of 720 lines; sound and scores; the features of one backbone."""


@dataclass(frozen=True)
class Pipeline:
    """What there is to do for the videos of one data set under one configuration."""

    config: Config
    dataset: Dataset

    @classmethod
    def of(cls, config: Config, name: str) -> "Pipeline":
        """Return the pipeline of the data set ``name``, a folder or a list; raise ConfigError where it is none."""
        made = cls(config, dataset(config, name))
        made.check_clips()
        if config["strict"] and made.lacks:
            raise MissingError(f"strict: {name} lacks {', '.join(made.lacks)}")
        return made

    def check_clips(self) -> None:
        """Raise ConfigError where a backbone describes listed clips and there are none, or the list is wrong."""
        for backbone in self.configured_backbones:
            if self.describes_clips(backbone) and not self.lists_clips:
                raise ConfigError(
                    f"config: {backbone} describes listed clips, and {self.name} lists none: {self.how_to_list}"
                )

    def check_records(self) -> None:
        """Read all that the jobs will ask of earlier runs' records; raise StoreError where one is damaged."""
        for shard in self.all_shards:
            self.video_params(shard)
            self.transcribe_params(shard)
            if (path := paths.availability(self.name, shard)).exists():
                read_availability(path)

    @property
    def name(self) -> str:
        """The data set's name."""
        return self.dataset.name

    @property
    def targets(self) -> tuple[str, ...]:
        """What is made of the data set where no target is named, in ``results/<name>/``."""
        return "videos.csv", "report.html"

    @property
    def configured_backbones(self) -> Sequence[str]:
        """The backbones whose features are wanted."""
        backbones: list[str] = self.config["datasets"][self.name]["backbones"]
        return backbones

    @property
    def backbones(self) -> Sequence[str]:
        """The backbones whose features are computed: those that lack nothing."""
        return [name for name in self.configured_backbones if not self.backbone_lacks(name)]

    def backbone_lacks(self, name: str) -> tuple[str, ...]:
        """Return what a backbone lacks before it can run; raise ConfigError where the name is unknown."""
        if name not in self._backbone_lacks:
            self._backbone_lacks[name] = lacking_backbone(name, self.config)
        return self._backbone_lacks[name]

    @cached_property
    def _backbone_lacks(self) -> dict[str, tuple[str, ...]]:
        return {}

    @property
    def lacks(self) -> tuple[str, ...]:
        """What the recogniser and the configured backbones lack."""
        needed = [self.recogniser_lacks, *map(self.backbone_lacks, self.configured_backbones)]
        return tuple(dict.fromkeys(chain(*needed)))

    def clips_of(self, backbone: str) -> dict[str, list[tuple[float, float]]]:
        """Return the clips that a backbone describes, by video; none where it describes a video at regular times."""
        return self.listed_clips if self.describes_clips(backbone) else {}

    def describes_clips(self, backbone: str) -> bool:
        """Return whether a backbone describes listed clips, not a video at regular times."""
        if backbone not in self._resolved:
            try:
                spec = resolve(backbone, self.config)
            except MissingError:
                return False
            self._resolved[backbone] = isinstance(spec, ClipSpec) and spec.placement != "grid"
        return self._resolved[backbone]

    @cached_property
    def _resolved(self) -> dict[str, bool]:
        return {}

    @property
    def lists_clips(self) -> bool:
        """Whether there are listed clips."""
        return bool(self.listed_clips)

    @property
    def clip_inputs(self) -> list[Path]:
        """What must be there before listed clips are known."""
        return []

    def clips_params(self, shard: str, backbone: str) -> Any:
        """Return what decides the clips of a shard that a backbone describes, besides ``clip_inputs``."""
        clips = self.clips_of(backbone)
        return digest([clips.get(video.id, []) for video in self.members(shard)])

    @cached_property
    def listed_clips(self) -> dict[str, list[tuple[float, float]]]:
        """The clips [start_s, end_s) of each video that backbones for listed clips describe, ascending."""
        file = self.config["datasets"][self.name].get("clips", "")
        if not file:
            return {}
        ids = {video.id for video in self.dataset.videos()}
        found = read_segments(self.name, os.path.expanduser(file), ids, key="clips")
        return {video: sorted({(clip.start_s, clip.end_s) for clip in clips}) for video, clips in found.items()}

    @property
    def releases(self) -> Sequence[str]:
        """The configured releases of a study."""
        return ()

    @property
    def wants_videos(self) -> bool:
        """Whether something configured is made from videos."""
        return True

    @property
    def weights(self) -> Sequence[str]:
        """The names of the configured weights, as far as they are looked for."""
        return [item.removeprefix("weights:") for item in self.lacks if item.startswith("weights:")]

    # Shards

    @cached_property
    def shards(self) -> dict[str, str]:
        """The shard of every listed video."""
        return self.dataset.shards(self.config["shard_hours"])

    @property
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

    def disk_gb(self, stage: str, shard: str) -> int:
        """Return about how many gigabytes a stage writes for a shard; a video that is only linked takes none."""
        videos = [v for v in self.members(shard) if stage != "videos" or (v.url and not signature(Wanted(path=v.path)))]
        return ceil(sum(video.length_s for video in videos) * DISK_BYTES_PER_S[stage] / 1e9)

    # Videos

    def video_params(self, shard: str) -> str:
        """Return what a shard's videos must be looked for again for: what there is of them, and lost files.

        A digest, as Snakemake shows and keeps parameters, and addresses may hold passwords.
        """
        found = [[video.id, video.url, video.sha256, _signature(video)] for video in self.members(shard)]
        by = {"found": found, "again": self.again(shard), "strict": self.config["strict"]}
        spans = [self.spans_params.get(video.id) for video in self.members(shard)] if self.annotated else []
        return digest(by | ({"spans": spans} if spans else {}))

    @property
    def annotated(self) -> bool:
        """Whether only annotated spans of videos are fetched and decoded."""
        return bool(self.config["media"]["spans"] == "annotated")

    @property
    def video_inputs(self) -> list[Path]:
        """What must be there before videos are looked for."""
        return []

    def spans(self) -> dict[str, list[list[float]]]:
        """Return the annotated spans by video; a video without any is read whole."""
        ids = {video.id for video in self.dataset.videos()}
        found = read_segments(self.name, self.dataset.segments, ids) if self.dataset.segments else {}
        return {video: merged((span.start_s, span.end_s) for span in spans) for video, spans in found.items()}

    @cached_property
    def spans_params(self) -> dict[str, Any]:
        """By video, what it must be looked for again for, as it decides its spans."""
        return dict(self.spans())

    def again(self, shard: str) -> int:
        """Return how often videos of a shard, once there, had to be fetched again, counting now.

        After that fetch the number is the same, so the next run has nothing to do.
        """
        path = paths.fetches(self.name, shard)
        before: int = read_json(path)["again"] if path.exists() else 0
        present = [record for record in map(self._record, self.members(shard)) if record and record.status == "present"]
        needed = self.needs_videos(shard)
        return before + any((record.kept or needed) and not Path(record.path).exists() for record in present)

    def _record(self, video: Video) -> Record | None:
        path = paths.videos(self.name) / f"{video.id}.json"
        return read_availability(path).get(video.id) if path.exists() else None

    def needs_videos(self, shard: str) -> bool:
        """Return whether something is still to be computed from a shard's videos."""
        path = paths.dropped(self.name, shard)
        made = read_json(path)["by"] if path.exists() else None
        return made != self.media_params() or not all(path.exists() for path in self.made_from_videos(shard))

    def spec_of(self, name: str) -> Spec:
        """Return the spec of an encoder by its name, as it is configured."""
        if name not in self._specs:
            self._specs[name] = spec_of(name, self.config)
        return self._specs[name]

    @cached_property
    def _specs(self) -> dict[str, Spec]:
        return {}

    def backbone_of(self, folder: str) -> str:
        """Return the backbone whose features stand in ``features/<folder>``; raise ConfigError where there is none."""
        found = {self.spec_of(name).name: name for name in self.backbones}
        if folder not in found:
            raise ConfigError(
                f"backbone {folder!r} is not one of {self.name}: choose from {', '.join(found) or 'none'}"
            )
        return found[folder]

    def environment(self, backbone: str) -> str:
        """Return the conda environment file of a backbone: the user's own, or the name of one in ``envs/``."""
        own: str = self.config["backbones"].get(backbone, {}).get("env", "")
        if own:
            return os.path.abspath(os.path.expanduser(own))
        return "vision" if self.networks else "media"

    @property
    def how_to_list(self) -> str:
        """What to do where a backbone wants listed clips."""
        return (
            "give `clips`, a CSV file with the columns video, start_s, end_s and a line per clip, or name a backbone "
            "that describes each second"
        )

    @property
    def networks(self) -> bool:
        """Whether one of the backbones is a network."""
        return any(isinstance(self.spec_of(name), ClipSpec) for name in self.backbones)

    def made_from_videos(self, shard: str) -> list[Path]:
        """Return the records of all that is computed from a shard's videos themselves."""
        features = [paths.features_manifest(self.name, shard, self.spec_of(backbone)) for backbone in self.backbones]
        return [paths.manifest(paths.media(self.name), shard), *features]

    def drop_inputs(self, shard: str) -> list[Path]:
        """Return the records of all that wants a shard's videos: what is computed from them, and pictures."""
        return [*self.made_from_videos(shard), paths.manifest(paths.thumbnails(self.name), shard)]

    @property
    def dropped(self) -> list[Path]:
        """The records that shards' videos are deleted, where they are not kept."""
        return [paths.dropped(self.name, shard) for shard in self.all_shards] if self.drops else []

    @property
    def drops(self) -> bool:
        """Whether videos are deleted once all is computed from them."""
        return bool(self.config["media"]["keep"] == "none")

    # What is made of videos

    def media_params(self) -> str:
        """Return what audio and scores must be made again for, as text."""
        return canonical_json({"revision": MEDIA_REVISION, "limits": self.config["media"]["limits"]})

    def shots_params(self) -> str:
        """Return what shots must be found again for, besides other scores, as text."""
        return canonical_json({"revision": SHOTS_REVISION, **self.config["shots"]})

    def extract_params(self, folder: str, shard: str) -> str:
        """Return what a shard's features in ``features/<folder>`` must be made again for, besides another spec."""
        by: dict[str, Any] = {"limits": self.config["media"]["limits"]}
        backbone = self.backbone_of(folder)
        if self.describes_clips(backbone):
            by["clips"] = self.clips_params(shard, backbone)
        damages = paths.damages(self.name, shard, self.spec_of(backbone))
        if damages.exists():
            by["damages"] = read_json(damages)["found"]
        return canonical_json(by)

    @property
    def engine(self) -> str:
        """The recogniser."""
        engine: str = self.config["asr"]["engine"]
        return engine

    @cached_property
    def recogniser(self) -> dict[str, Any]:
        """What decides a transcript besides the audio."""
        return recogniser(self.engine, self.config["asr"].get(self.engine, {}))

    @cached_property
    def recogniser_lacks(self) -> tuple[str, ...]:
        """What the recogniser lacks; nothing where all transcripts are there."""
        absent = lacking(self.engine, self.config["asr"].get(self.engine, {}))
        return absent if absent and not self.transcribed else ()

    @cached_property
    def transcribed(self) -> bool:
        """Whether the recogniser's transcripts of all videos are there."""
        return all(map(self._is_transcribed, self.all_shards))

    def _is_transcribed(self, shard: str) -> bool:
        manifest = paths.manifest(paths.transcripts(self.name, self.engine), shard)
        if not manifest.exists() or not self.recogniser.items() <= read_json(manifest).items():
            return False
        made = read_manifest(manifest)
        if not {video.id for video in self.members(shard)} <= made.keys():
            return False
        return not any(video["status"] == "failed" and "failures" in video for video in made.values())

    def transcribe_params(self, shard: str) -> str:
        """Return what a shard must be transcribed again for, as text: another recogniser, and what failed since."""
        folder = paths.transcripts(self.name, self.engine)
        records = [folder / f"{video.id}.json" for video in self.members(shard)]
        failed = {
            path.stem: made["failures"]
            for path in records
            if path.is_file() and "failures" in (made := read_json(path))
        }
        return canonical_json({"failures": failed, **self.recogniser})

    @property
    def shot_manifests(self) -> list[Path]:
        """The records of all shots."""
        return [paths.manifest(paths.shots(self.name), shard) for shard in self.all_shards]

    @property
    def transcript_manifests(self) -> list[Path]:
        """The records of all recognised transcripts."""
        return [paths.manifest(paths.transcripts(self.name, self.engine), shard) for shard in self.all_shards]

    @property
    def thumbnail_manifests(self) -> list[Path]:
        """The records of all small pictures of shots."""
        return [paths.manifest(paths.thumbnails(self.name), shard) for shard in self.all_shards]

    # The table and the page of a data set

    def summary_inputs(self) -> list[Path]:
        """Return what the table of videos counts."""
        made = [path for shard in self.all_shards for path in self.made_from_videos(shard)]
        found = [paths.availability(self.name, shard) for shard in self.all_shards]
        said = [] if self.recogniser_lacks else self.transcript_manifests
        return [*found, *made, *self.shot_manifests, *said, *self.dropped]

    def summary_params(self) -> str:
        """Return what the table must be made again for, besides its inputs, as text."""
        return digest([self.lacks, self.recogniser])

    def report_inputs(self) -> list[Path]:
        """Return what the page shows besides the table."""
        return [*self.thumbnail_manifests, *([Path(self.dataset.segments)] if self.dataset.segments else [])]


def how_to_fill(item: str) -> str:
    """Return a command that brings what ``needs`` names: weights, videos, a key, a package; "" for anything else."""
    kind, _, what = item.partition(":")
    if kind == "weights":
        known = what in backbones.WEIGHTS or ":" in what
        return backbones.how_to_get(what) if known else recognisers.how_to_get(what)
    commands = {
        "videos": f"stepline fetch {what}/videos",
        "key": f"export {what}=...",
        "package": "pip install -c constraints.txt -e '.[all]'",
    }
    return commands.get(kind, "")


def _signature(video: Video) -> str:
    """Return a short text that changes when the file of a video appears, changes, goes or may be read or no longer."""
    if not video.file:
        return signature(Wanted(path=video.path))
    path = Path(video.file)
    return f"{path.stat().st_size}-{path.stat().st_mtime_ns}" if path.is_file() and os.access(path, os.R_OK) else ""

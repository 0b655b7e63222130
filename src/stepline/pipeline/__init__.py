"""The pipeline of a data set: the jobs of its videos, with their inputs and cache keys.

The workflow queries it and runs the jobs. This package computes nothing and imports nothing heavy.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from stepline import paths
from stepline.availability import read_availability
from stepline.config import Config
from stepline.datasets.configured import dataset
from stepline.datasets.dataset import Dataset
from stepline.errors import ConfigError, MissingError
from stepline.io import sha256_file
from stepline.needs import Need, in_order
from stepline.pipeline.demand import STAGES, Clips, Demand, Own, configured_stages
from stepline.pipeline.features import Features
from stepline.pipeline.fill import how_to_fill
from stepline.pipeline.speech import Speech
from stepline.pipeline.videos import Videos, media_params, shots_params
from stepline.remembered import remembered
from stepline.spec import digest

__all__ = [
    "STAGES", "Clips", "Demand", "Features", "Own", "Pipeline", "Speech", "Videos", "configured_stages",
    "how_to_fill", "media_params", "shots_params",
]  # fmt: skip


@dataclass(frozen=True)
class Pipeline:
    """The jobs of the videos of one data set under one configuration, as its owner demands."""

    config: Config
    dataset: Dataset
    demand: Demand

    @classmethod
    def of(cls, config: Config, name: str) -> "Pipeline":
        """Return the pipeline of the user's data set ``name``, a folder or a list.

        Raises ConfigError if there is no such data set, or if a backbone needs listed clips and the data set has none.
        """
        found = dataset(config, name)
        demand = Own(config, found)
        made = cls(config, found, demand)
        for backbone in made.features.configured:
            try:
                listed = made.features.describes_clips(backbone)
            except ConfigError as error:
                raise ConfigError(f"config: datasets.{name}.backbones: {error}") from None
            if listed and not demand.listed_clips:
                raise ConfigError(
                    f"config: {backbone} needs listed clips, and {name} has none: set `clips` to a CSV file with "
                    "the columns video, start_s, end_s and one line per clip, or use a backbone that computes features "
                    "at regular times"
                )
        if config["strict"] and made.missing:
            raise MissingError(f"strict: {name} needs {', '.join(map(str, made.missing))}")
        return made

    @property
    def name(self) -> str:
        """The data set's name."""
        return self.dataset.name

    @property
    def targets(self) -> tuple[str, ...]:
        """The files of ``results/<name>/`` that a run without a named target writes."""
        return self.demand.targets

    @cached_property
    def videos(self) -> Videos:
        """The videos and their shards."""
        return Videos(self.config, self.dataset, self.demand, self.drop_inputs)

    @cached_property
    def speech(self) -> Speech:
        """The transcripts."""
        return Speech(self.config, self.videos)

    @cached_property
    def features(self) -> Features:
        """The features."""
        return Features(self.config, self.videos, self.demand)

    @property
    def missing(self) -> tuple[Need, ...]:
        """What the configured backbones need but is missing, and the recogniser too if speech is wanted."""
        said = self.speech.missing if "speech" in self.demand.stages else ()
        return in_order([*said, *(need for name in self.features.configured for need in self.features.missing(name))])

    @property
    def note(self) -> str:
        """Sentences that name the replacements, used or possible, for missing parts; "" if nothing is missing."""
        said = self.speech.note if "speech" in self.demand.stages else ""
        return " ".join(filter(None, [said, self.features.note]))

    @property
    def weights(self) -> list[str]:
        """The names of missing weights."""
        return [need.what for need in self.missing if need.kind == "weights"]

    def made_from_videos(self, shard: str) -> list[Path]:
        """Return the records of everything that is computed directly from a shard's videos."""
        sound = [paths.manifest(paths.media(self.name), shard)] if self.demand.media else []
        specs = map(self.features.spec_of, self.features.computed)
        features = [paths.features_manifest(self.name, shard, spec) for spec in specs]
        return [*sound, *features, *self.demand.predictions()]

    def drop_inputs(self, shard: str) -> list[Path]:
        """Return the records of every stage that reads a shard's videos, pictures included."""
        return [*self.made_from_videos(shard), *self._manifests("pictures", paths.thumbnails(self.name), [shard])]

    def _manifests(self, stage: str, folder: Path, shards: Sequence[str]) -> list[Path]:
        """Return the records of shards in the folder of a stage; an empty list if the stage is not wanted."""
        return [paths.manifest(folder, shard) for shard in shards if stage in self.demand.stages]

    def check_records(self) -> None:
        """Check the recogniser's options and read the records of earlier runs that the jobs will use.

        Raises ConfigError if an option is not allowed, StoreError if a record is damaged.
        """
        if not (self.demand.media or self.features.computed or self.demand.predictions()):
            return
        if "speech" in self.demand.stages:
            _ = self.speech.options
        for shard in self.videos.all_shards:
            self.videos.params(shard)
            if "speech" in self.demand.stages:
                self.speech.params(shard)
            availability = paths.availability(self.name, shard)
            if availability.exists():
                remembered(f"{self.name}/availability/{shard}", [str(availability)], partial(_is_whole, availability))

    # The table and the page of the data set

    def summary_inputs(self) -> list[Path]:
        """Return the inputs of the table of videos."""
        made = [path for shard in self.videos.all_shards for path in self.made_from_videos(shard)]
        shots = self._manifests("shots", paths.shots(self.name), self.videos.all_shards)
        speech = "speech" in self.demand.stages and not self.speech.missing
        said = self.speech.manifests if speech else self._read_instead()
        return [*self.videos.availability, *made, *shots, *said, *self.videos.dropped]

    def _read_instead(self) -> list[Path]:
        """Return the records of another recogniser's transcripts, if those are shown."""
        wanted = "speech" in self.demand.stages and self.speech.readable is not self.speech
        return [path for path in self.speech.readable.manifests if path.exists()] if wanted else []

    def summary_params(self) -> str:
        """Return the cache key of the table, in addition to its inputs, as text."""
        record = self.speech.record if "speech" in self.demand.stages else None
        shown = [self.dataset.left_out(), self.dataset.split_of]
        return digest([list(map(str, self.missing)), record, *filter(None, shown)])

    def report_inputs(self) -> list[Path]:
        """Return the inputs of the page, in addition to the table."""
        return self._manifests("pictures", paths.thumbnails(self.name), self.videos.all_shards)

    def report_params(self) -> str:
        """Return the cache key of the page, in addition to its inputs: the sha256 of the user's segments, or ""."""
        return sha256_file(self.dataset.segments) if self.dataset.segments else ""


def _is_whole(availability: Path) -> bool:
    read_availability(availability)
    return True

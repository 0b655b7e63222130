"""The transcripts of a data set's videos: their recogniser, its missing parts and its cache keys."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.asr import engines, languages
from stepline.availability import read_manifest
from stepline.config import Config
from stepline.io import canonical_json, read_json
from stepline.needs import Need
from stepline.pipeline.videos import Videos
from stepline.remembered import remembered

OTHERS = ("deepgram", "whisper", "faster_whisper", "pocketsphinx")
"""Recognisers whose transcripts replace those that cannot be computed, most accurate first."""


def options_of(config: Config, dataset: str) -> dict[str, Any]:
    """Return the recogniser's options for a data set, and ``language`` unless it is English.

    Raises ConfigError if the recogniser cannot transcribe the language.
    """
    engine, own = config["asr"]["engine"], config["datasets"].get(dataset, {}).get("language")
    language, options = own or config["asr"]["language"], dict(config["asr"].get(engine, {}))
    if language != languages.ENGLISH:
        options["language"] = language
    languages.check(engine, options, f"datasets.{dataset}.language" if own else "asr.language")
    return options


@dataclass(frozen=True)
class Speech:
    """The transcripts of the videos of a data set by the configured recogniser."""

    config: Config
    videos: Videos

    @property
    def engine(self) -> str:
        """The name of the recogniser."""
        engine: str = self.config["asr"]["engine"]
        return engine

    @cached_property
    def options(self) -> dict[str, Any]:
        """The recogniser's options, see ``options_of``."""
        return options_of(self.config, self.videos.dataset.name)

    @cached_property
    def record(self) -> dict[str, Any]:
        """The cache key of a transcript, in addition to the audio."""
        return engines.recogniser(self.engine, self.options)

    @property
    def folder(self) -> Path:
        """The folder of the transcripts."""
        return paths.transcripts(self.videos.dataset.name, self.engine)

    @property
    def manifests(self) -> list[Path]:
        """The records of all transcripts."""
        return self.videos.manifests(self.folder)

    @cached_property
    def missing(self) -> tuple[Need, ...]:
        """What the recogniser needs but is missing; nothing if all transcripts exist."""
        found = engines.missing(self.engine, self.options)
        return found if found and not self.transcribed else ()

    @cached_property
    def readable(self) -> "Speech":
        """The transcripts to show and to search: these, or another recogniser's if this one has produced none.

        If several others exist, the first of ``OTHERS`` is used.
        """
        if self._begun:
            return self
        asr = self.config["asr"]
        others = (Speech({**self.config, "asr": {**asr, "engine": engine}}, self.videos) for engine in OTHERS)
        return next((other for other in others if other._begun), self)

    @property
    def note(self) -> str:
        """A line that names the recogniser of the transcripts if it is not the configured one, otherwise ""."""
        if self.readable is self:
            return ""
        why = f"needs {', '.join(map(str, self.missing))}" if self.missing else "has not run yet"
        return f"The transcripts are by {self.readable.engine}: {self.engine} {why}."

    @property
    def _begun(self) -> bool:
        return any(path.exists() for path in self.manifests)

    @cached_property
    def transcribed(self) -> bool:
        """Whether the recogniser's transcripts of all videos exist, and none is of an earlier file."""
        return all(self.is_transcribed(shard) and not self._outdated(shard) for shard in self.videos.all_shards)

    def _outdated(self, shard: str) -> bool:
        stamps = self.videos.stamps(shard)
        for video, came in self.videos.came(shard).items():
            made = self.folder / f"{video}.json"
            source = read_json(made).get("source", {}) if made.is_file() else {}
            if stamps[video] != came.stamp or not source.get("sha256", came.sha256).startswith(came.sha256):
                return True
        return False

    def is_transcribed(self, shard: str) -> bool:
        """Return whether the recogniser's transcripts of all videos of a shard exist and none has failed."""
        manifest = paths.manifest(self.folder, shard)
        if not manifest.exists() or not self.record.items() <= read_json(manifest).items():
            return False
        made = read_manifest(manifest)
        if not {video.id for video in self.videos.members(shard)} <= made.keys():
            return False
        return not any(video["status"] == "failed" and "failures" in video for video in made.values())

    def params(self, shard: str) -> str:
        """Return the cache key of a shard's transcripts as text: the recogniser's settings and earlier failures."""
        return canonical_json({"failures": self._failures(shard), **self.record})

    @cached_property
    def _failures(self) -> Callable[[str], dict[str, int]]:
        """Returns the number of failures of each video of a shard, from the video's record."""

        def failures(shard: str) -> dict[str, int]:
            folder, members = os.fspath(self.folder), self.videos.members(shard)
            records = [f"{folder}/{video.id}.json" for video in members] if os.path.isdir(folder) else []

            def read() -> dict[str, int]:
                there = {path: read_json(path) for path in records if os.path.isfile(path)}
                return {Path(path).stem: made["failures"] for path, made in there.items() if "failures" in made}

            return remembered(f"{self.videos.dataset.name}/{self.engine}/{shard}", records, read)

        return cache(failures)

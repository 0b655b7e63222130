"""The transcripts of a data set's videos: by which recogniser, and what it is missing."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.asr import engines
from stepline.availability import read_manifest
from stepline.config import Config
from stepline.io import canonical_json, read_json
from stepline.needs import Need
from stepline.pipeline.videos import Videos
from stepline.remembered import remembered

OTHERS = ("deepgram", "whisper", "faster_whisper", "pocketsphinx")
"""Recognisers whose transcripts stand in for those that cannot be made, the most accurate first."""


@dataclass(frozen=True)
class Speech:
    """What the configured recogniser makes of the videos of a data set."""

    config: Config
    videos: Videos

    @property
    def engine(self) -> str:
        """The recogniser."""
        engine: str = self.config["asr"]["engine"]
        return engine

    @property
    def _options(self) -> dict[str, Any]:
        options: dict[str, Any] = self.config["asr"].get(self.engine, {})
        return options

    @cached_property
    def record(self) -> dict[str, Any]:
        """What decides a transcript besides the audio."""
        return engines.recogniser(self.engine, self._options)

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
        """What the recogniser is missing; nothing where all transcripts are there."""
        found = engines.missing(self.engine, self._options)
        return found if found and not self.transcribed else ()

    @cached_property
    def readable(self) -> "Speech":
        """The transcripts to show and to search: these, or another recogniser's where this one cannot make any.

        Of several others, the first of ``OTHERS`` whose transcripts are there.
        """
        if not self.missing or self._begun:
            return self
        asr = self.config["asr"]
        others = (Speech({**self.config, "asr": {**asr, "engine": engine}}, self.videos) for engine in OTHERS)
        return next((other for other in others if other._begun), self)

    @property
    def note(self) -> str:
        """A line on whose transcripts are shown in place of the configured recogniser's; "" where they are its own."""
        if self.readable is self:
            return ""
        needs = ", ".join(map(str, self.missing))
        return f"The transcripts are those of {self.readable.engine}: {self.engine} needs {needs}."

    @property
    def _begun(self) -> bool:
        return any(path.exists() for path in self.manifests)

    @cached_property
    def transcribed(self) -> bool:
        """Whether the recogniser's transcripts of all videos are there."""
        return all(map(self.is_transcribed, self.videos.all_shards))

    def is_transcribed(self, shard: str) -> bool:
        """Return whether the recogniser's transcripts of a shard's videos are there, and none has failed."""
        manifest = paths.manifest(self.folder, shard)
        if not manifest.exists() or not self.record.items() <= read_json(manifest).items():
            return False
        made = read_manifest(manifest)
        if not {video.id for video in self.videos.members(shard)} <= made.keys():
            return False
        return not any(video["status"] == "failed" and "failures" in video for video in made.values())

    def params(self, shard: str) -> str:
        """Return what a shard must be transcribed again for, as text: another recogniser, and what failed since."""
        return canonical_json({"failures": self._failures(shard), **self.record})

    @cached_property
    def _failures(self) -> Callable[[str], dict[str, int]]:
        """Returns how often the transcripts of a shard failed, by video, as the record of each says."""

        def failures(shard: str) -> dict[str, int]:
            folder, members = os.fspath(self.folder), self.videos.members(shard)
            records = [f"{folder}/{video.id}.json" for video in members] if os.path.isdir(folder) else []

            def read() -> dict[str, int]:
                there = {path: read_json(path) for path in records if os.path.isfile(path)}
                return {Path(path).stem: made["failures"] for path, made in there.items() if "failures" in made}

            return remembered(f"{self.videos.dataset.name}/{self.engine}/{shard}", records, read)

        return cache(failures)

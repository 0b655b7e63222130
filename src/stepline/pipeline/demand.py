"""What the owner of a data set, its user or a benchmark, needs computed from its videos."""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from stepline.config import Config
from stepline.datasets.dataset import Dataset
from stepline.datasets.schema import Video
from stepline.datasets.segments import read_segments
from stepline.media.spans import merged
from stepline.spec import digest

STAGES = ("shots", "pictures", "speech", "features")
"""What can be computed from videos; ``pictures`` show shots."""
Clips = Mapping[str, Sequence[tuple[float, float]]]
"""Clips [start_s, end_s) by video, ascending."""


def configured_stages(config: Config, dataset: str) -> frozenset[str]:
    """Return the configured stages of a user's data set, with ``shots`` if ``pictures`` is named.

    By default, all; of images, which have no sound, all except ``speech``.
    """
    declared = config["datasets"].get(dataset, {})
    heard = declared.get("kind") != "images"
    named = declared.get("stages", [stage for stage in STAGES if heard or stage != "speech"])
    return frozenset([*named, *(["shots"] if "pictures" in named else [])])


class Demand:
    """What the owner of a data set needs from its videos; a subclass overrides the defaults."""

    targets: ClassVar[tuple[str, ...]] = ()
    """The files of ``results/<name>/`` that a run without a named target writes."""
    stages: Collection[str] = STAGES
    """The members of ``STAGES`` that are computed for all videos."""

    @property
    def media(self) -> bool:
        """Whether audio and content scores of all videos are computed: speech needs audio, shots need scores."""
        return not {"shots", "speech"}.isdisjoint(self.stages)

    @property
    def wants_videos(self) -> bool:
        """Whether any configured result is computed from videos."""
        return True

    @property
    def drops(self) -> bool:
        """Whether videos may be deleted once everything is computed from them."""
        return True

    @property
    def backbones(self) -> Sequence[str]:
        """The configured backbones."""
        return ()

    def reads(self, _backbone: str) -> bool:
        """Return whether any computable result reads the features of a backbone that has everything it needs."""
        return True

    def predictions(self) -> list[Path]:
        """Return the predictions that read the videos directly."""
        return []

    # The clips for backbones that use listed clips

    @property
    def clip_inputs(self) -> list[Path]:
        """Files that must exist before `clips` is called."""
        return []

    def clips(self, _backbone: str) -> Clips:
        """Return the clips whose features a backbone computes."""
        return {}

    def clips_within(
        self, backbone: str, _ends_s: Mapping[str, float], _rounded: bool, _say: Callable[[str], object]
    ) -> Clips:
        """Return the clips of videos that end at ``ends_s``; users' clips after the end as in ``read_segments``."""
        return self.clips(backbone)

    def clip_params(self, backbone: str, members: Sequence[Video]) -> Any:
        """Return the cache key of the clips of a shard's videos, in addition to `clip_inputs`."""
        clips = self.clips(backbone)
        return digest([clips.get(video.id, []) for video in members])

    # The annotated spans, to which decoding can be limited

    @property
    def span_inputs(self) -> list[Path]:
        """Files that must exist before `spans` is called."""
        return []

    def spans(self) -> dict[str, list[list[float]]]:
        """Return the annotated spans of each video in seconds; a video without spans is read whole."""
        return {}

    @cached_property
    def span_params(self) -> Mapping[str, Any]:
        """The cache key of the spans of each video, in addition to `span_inputs`."""
        return dict(self.spans())


@dataclass(frozen=True)
class Own(Demand):
    """The demand of a data set under ``datasets:`` of the configuration."""

    config: Config
    dataset: Dataset

    targets = ("videos.csv", "report.html")

    @cached_property
    def stages(self) -> Collection[str]:  # type: ignore[override]
        """The configured stages."""
        return configured_stages(self.config, self.dataset.name)

    @property
    def backbones(self) -> Sequence[str]:
        """The configured backbones; none if features are not wanted."""
        backbones: list[str] = self.config["datasets"][self.dataset.name]["backbones"]
        return backbones if "features" in self.stages else ()

    def clips(self, _backbone: str) -> Clips:
        """Return the user's clips, the same for all backbones; raise ConfigError if their file is invalid."""
        return self.listed_clips

    def clips_within(
        self, _backbone: str, ends_s: Mapping[str, float], rounded: bool, say: Callable[[str], object]
    ) -> Clips:
        """Return the user's clips, see ``read_segments``."""
        file = self.config["datasets"][self.dataset.name].get("clips", "")
        if not file:
            return {}
        ids = {video.id for video in self.dataset.videos()}
        found = read_segments(
            self.dataset.name, os.path.expanduser(file), ids, key="clips", ends_s=ends_s, rounded=rounded, say=say
        )
        return {video: sorted({(clip.start_s, clip.end_s) for clip in clips}) for video, clips in found.items()}

    @cached_property
    def listed_clips(self) -> Clips:
        """The clips of the file that the configuration names, also those after the end of their video."""
        return self.clips_within("", {}, True, print)

    def spans(self) -> dict[str, list[list[float]]]:
        """Return the user's segments, merged where they overlap."""
        if not self.dataset.segments:
            return {}
        ids = {video.id for video in self.dataset.videos()}
        found = read_segments(self.dataset.name, self.dataset.segments, ids)
        return {video: merged((span.start_s, span.end_s) for span in spans) for video, spans in found.items()}

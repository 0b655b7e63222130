"""What is asked of a data set's videos: by the user's own data set, or by a benchmark."""

import os
from collections.abc import Collection, Mapping, Sequence
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
"""What can be made of videos; ``pictures`` are of shots."""
Clips = Mapping[str, Sequence[tuple[float, float]]]
"""Clips [start_s, end_s) by video, ascending."""


def configured_stages(config: Config, dataset: str) -> frozenset[str]:
    """Return the stages that a data set of the user's names, with the shots that pictures are of; of others all."""
    named = config["datasets"].get(dataset, {}).get("stages", STAGES)
    return frozenset([*named, *(["shots"] if "pictures" in named else [])])


class Demand:
    """What the owner of a data set asks of its videos; an owner overrides what it asks besides the defaults."""

    targets: ClassVar[tuple[str, ...]] = ()
    """The files of ``results/<name>/`` that are made where no target is named."""
    stages: Collection[str] = STAGES
    """What is made of all videos, of ``STAGES``."""

    @property
    def media(self) -> bool:
        """Whether sound and scores are made of all videos: shots are found in scores, speech is heard in sound."""
        return not {"shots", "speech"}.isdisjoint(self.stages)

    @property
    def wants_videos(self) -> bool:
        """Whether something configured is made from videos."""
        return True

    @property
    def drops(self) -> bool:
        """Whether videos may be deleted once all is computed from them."""
        return True

    @property
    def backbones(self) -> Sequence[str]:
        """The configured backbones."""
        return ()

    def reads(self, _backbone: str) -> bool:
        """Return whether the features of a backbone that misses nothing are read by something that can be computed."""
        return True

    def predictions(self) -> list[Path]:
        """Return the predictions that read the videos themselves."""
        return []

    # The clips that backbones for listed clips describe

    @property
    def clip_inputs(self) -> list[Path]:
        """What must be there before `clips` is called."""
        return []

    def clips(self, _backbone: str) -> Clips:
        """Return the clips that a backbone describes."""
        return {}

    def clip_params(self, backbone: str, members: Sequence[Video]) -> Any:
        """Return what decides the clips of a shard's videos, besides `clip_inputs`."""
        clips = self.clips(backbone)
        return digest([clips.get(video.id, []) for video in members])

    # The annotated spans, to which fetching and decoding can be limited

    @property
    def span_inputs(self) -> list[Path]:
        """What must be there before `spans` is called."""
        return []

    def spans(self) -> dict[str, list[list[float]]]:
        """Return the annotated spans in seconds by video; a video without any is read whole."""
        return {}

    @cached_property
    def span_params(self) -> Mapping[str, Any]:
        """What decides the spans of each video, besides `span_inputs`."""
        return dict(self.spans())


@dataclass(frozen=True)
class Own(Demand):
    """What is asked of a data set under ``datasets:`` of the configuration."""

    config: Config
    dataset: Dataset

    targets = ("videos.csv", "report.html")

    @cached_property
    def stages(self) -> Collection[str]:  # type: ignore[override]
        """What the configuration names."""
        return configured_stages(self.config, self.dataset.name)

    @property
    def backbones(self) -> Sequence[str]:
        """The configured backbones, where features are wanted."""
        backbones: list[str] = self.config["datasets"][self.dataset.name]["backbones"]
        return backbones if "features" in self.stages else ()

    def clips(self, _backbone: str) -> Clips:
        """Return the user's clips, the same for all backbones; raise ConfigError where their file is wrong."""
        return self.listed_clips

    @cached_property
    def listed_clips(self) -> Clips:
        """The clips of the file that the configuration names."""
        file = self.config["datasets"][self.dataset.name].get("clips", "")
        if not file:
            return {}
        ids = {video.id for video in self.dataset.videos()}
        found = read_segments(self.dataset.name, os.path.expanduser(file), ids, key="clips")
        return {video: sorted({(clip.start_s, clip.end_s) for clip in clips}) for video, clips in found.items()}

    def spans(self) -> dict[str, list[list[float]]]:
        """Return the user's segments."""
        if not self.dataset.segments:
            return {}
        ids = {video.id for video in self.dataset.videos()}
        found = read_segments(self.dataset.name, self.dataset.segments, ids)
        return {video: merged((span.start_s, span.end_s) for span in spans) for video, spans in found.items()}

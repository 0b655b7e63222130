"""A study's demands on its videos and texts: features, clips, spans and embeddings for its entries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from stepline import paths
from stepline.datasets.schema import Video
from stepline.datasets.studies import RETRIEVAL, STEP_RECOGNITION
from stepline.io import canonical_json
from stepline.media.spans import merged
from stepline.pipeline import Clips, Demand

if TYPE_CHECKING:
    from stepline.benchmarks.spacewalk.benchmark import Spacewalk

SLACK_S = 1.0
"""The margin around the spans that samples see, because the releases' frame numbers are rounded times."""


@dataclass(frozen=True)
class StudyDemand(Demand):
    """The demands of a plan's entries on the study's videos."""

    plan: "Spacewalk"

    @property
    def wants_videos(self) -> bool:
        """Whether an entry uses videos, now or once its needs are met."""
        return any(entry.backbone or self.plan.recognised(entry) for entry in self.plan.wanted.values())

    @property
    def drops(self) -> bool:
        """Whether an entry that can be computed uses videos."""
        return self.plan.uses_videos

    @property
    def backbones(self) -> Sequence[str]:
        """The backbones of the configured entries."""
        configured = self.plan.options["video_encoders"]
        return sorted({part.backbone for part in self.plan.wanted.values()} & {*configured})

    def reads(self, backbone: str) -> bool:
        """Return whether an entry that can be computed reads a backbone's features."""
        return backbone in {part.backbone for part in self.plan.ready.values()}

    def predictions(self) -> list[Path]:
        """Return the prediction files of jobs that decode videos."""
        return self.plan.decoding()

    @property
    def clip_inputs(self) -> list[Path]:
        """The releases and samples: their animations and windows are the listed clips."""
        plan, study = self.plan, self.plan.released
        features = plan.pipeline.features
        described = [backbone for backbone in features.computed if features.describes_clips(backbone)]
        if not described:
            return []
        tasks = dict.fromkeys(task for backbone in described for task in self._clip_windows(backbone))
        samples = [
            paths.samples(plan.name, release, task, split)
            for release in plan.releases
            for task in tasks
            if task in study.tasks[release]
            for split in study.splits(release, task)
        ]
        return [*map(plan.release_manifest, plan.releases), *samples]

    def _clip_windows(self, backbone: str) -> dict[str, list[float]]:
        """Return by task the lengths, in seconds, of the windows that a backbone of listed clips describes."""
        users = [part for part in self.plan.ready.values() if part.backbone == backbone]
        by_task = {task: [part.id for part in users if part.task == task] for task in (STEP_RECOGNITION, RETRIEVAL)}
        return {task: self._lengths(ids) for task, ids in by_task.items() if ids}

    def clips(self, backbone: str) -> Clips:
        """Return the windows of all samples and the steps' animations, by video; reads `clip_inputs`."""
        from stepline.benchmarks.spacewalk.windows import clips

        return clips(self.plan.released, self.plan.releases, self._clip_windows(backbone), self.plan.in_subset)

    def clip_params(self, backbone: str, members: Sequence[Video]) -> Any:
        """Return the cache key of the clips of a shard's videos, in addition to `clip_inputs`."""
        listed = [video.id for video in members if video.id in self.plan.in_subset]
        return [self.plan.releases, self._clip_windows(backbone), listed]

    @property
    def span_inputs(self) -> list[Path]:
        """The releases, which determine the spans to read."""
        return [self.plan.release_manifest(release) for release in self.plan.releases]

    def spans(self) -> dict[str, list[list[float]]]:
        """Return by video the spans, in seconds, that samples of the configured releases see at any window length.

        These are the labelled parts, extended by half the longest window on either side, and the steps' animations.
        Raises ReleaseError if a release is absent.
        """
        found: dict[str, list[tuple[float, float]]] = {}
        for name in self.plan.releases:
            for video, recording in self.plan.released.load(name).recordings.items():
                labelled = [(part.start_s, part.end_s) for part in recording.segments if part.label != -1]
                animations = [step.animation_s for step in recording.steps if step.animation_s]
                for parts, more_s in ((labelled, self._longest_s / 2 + SLACK_S), (animations, SLACK_S)):
                    longer = [(max(0.0, start_s - more_s), end_s + more_s) for start_s, end_s in parts]
                    found.setdefault(video, []).extend(longer)
        return {video: merged(spans) for video, spans in found.items()}

    @cached_property
    def span_params(self) -> Mapping[str, Any]:
        """The cache key of each video's spans, in addition to `span_inputs`."""
        return {video.id: [self.plan.releases, self._longest_s, SLACK_S] for video in self.plan.released.videos()}

    @property
    def _longest_s(self) -> float:
        """The longest window, in seconds, of the entries that use videos."""
        users = [part.id for part in self.plan.wanted.values() if part.backbone or self.plan.recognised(part)]
        return max(self._lengths(users), default=0.0)

    def _lengths(self, ids: Sequence[str]) -> list[float]:
        return [length_s for length_s in self.plan.windows(*ids) if length_s]


def encode_inputs(plan: "Spacewalk", release: str, task: str, video: str) -> list[Path]:
    """Return the inputs of encoding a recording's texts."""
    (split,) = {str(each.split) for each in plan.released.videos() if each.id == video}
    speech = plan.pipeline.speech
    made = [paths.manifest(speech.folder, speech.videos.shards[video])]
    inputs = [plan.release_manifest(release), paths.samples(plan.name, release, task, split)]
    return [*inputs, *(made if plan.options["transcripts"] == "asr" else [])]


def encode_params(plan: "Spacewalk", task: str, encoder: str) -> str:
    """Return the cache key of a recording's text embeddings, in addition to their inputs."""
    return canonical_json(texts(plan, task, encoder) | {"transcripts": plan.options["transcripts"]})


def texts(plan: "Spacewalk", task: str, encoder: str) -> dict[str, Any]:
    """Return which of a recording's texts an encoder embeds, in addition to the steps' texts.

    windows: lengths of the samples' windows, in seconds. others: ``sentences`` or ``segments``.
    """
    users = [part for part in plan.ready.values() if part.task == task and plan.texts_by(part) == encoder]
    windowed = [part.id for part in users if part.kind.texts == "windows" and part.blocks.strip("V")]
    return {
        "windows": [length_s for length_s in plan.windows(*windowed) if length_s],
        "others": sorted({part.kind.texts for part in users} - {"windows"}),
    }

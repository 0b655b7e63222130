"""Estimates of the hours and disk space of the jobs that are not done."""

import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import stepline.resources as most
from stepline import paths, rates
from stepline.asr import weights as recognisers
from stepline.availability import Record
from stepline.overview.graph import Graph, Job
from stepline.overview.lengths import Lengths, lengths
from stepline.overview.records import available
from stepline.overview.remaining import remaining
from stepline.overview.running import progress
from stepline.pipeline import Pipeline
from stepline.spec import ClipSpec, Spec

Basis = Literal["measured", "typical", "at most"]
"""The basis of an estimate: earlier runs in this work folder; `TYPICAL`; the time requested from a scheduler."""
TYPICAL = {"media": 0.10, "decode": 0.16}
"""Core seconds per second of 1280x720 video at 30 frames per second, with audio and without (perf/README.md)."""
FRAME_S = {"s3d": 0.029, "videoclip": 0.029, "timesformer": 0.62, "egovlp": 0.69}
"""Core seconds per 224 x 224 frame for each network family, from perf/networks.py."""
BYTES_PER_S = {"media": 33_000, "shots": 60, "transcripts": 200, "thumbnails": 800}
"""Bytes on disk per second of video, for 16 kHz audio with content scores and shots of five seconds."""
DOWNLOAD_BYTES_PER_S = 400_000
"""Upper bound for downloads in 720p; if some videos of the data set exist, their rate is used instead."""
UNKNOWN = ("videos", "encode", "fit", "predict", "score")
"""Rules whose jobs can be slow and whose time is not estimated."""


@dataclass(frozen=True)
class Estimate:
    """Hours and the basis of the estimate."""

    hours: float
    basis: Basis


@dataclass(frozen=True)
class Work:
    """Work on some hours of video. cpu: hours of one job. gpu: None if a GPU does not help."""

    what: str
    video_hours: float
    cpu: Estimate
    gpu: Estimate | None = None


@dataclass(frozen=True)
class Disk:
    """The maximum bytes of a folder; None if unknown. here: whether it is on this disk."""

    folder: str
    bytes: int | None
    here: bool = True


@dataclass(frozen=True)
class Videos:
    """The number of listed videos of a data set and their hours. guessed: the number of guessed lengths."""

    name: str
    listed: int
    hours: float
    guessed: int


@dataclass(frozen=True)
class Described:
    """The features of a backbone on a data set that are not computed yet.

    rows: the number of rows; None if the list of clips does not exist yet.
    """

    pipeline: Pipeline
    spec: Spec
    video_s: float
    rows: float | None

    @property
    def frames(self) -> float:
        """The number of frames that a network processes."""
        return (self.rows or 0) * getattr(self.spec, "num_frames", 1)

    @property
    def disk(self) -> Disk:
        """The disk space of the rows."""
        value = 2 if getattr(self.spec, "dtype", "float32") == "float16" else 4
        row = value * getattr(self.spec, "dimension", 0)
        folder = f"features/{self.spec.name}/{self.spec.id}/{self.pipeline.name}"
        here = not self.pipeline.config["features"]["store"]
        return Disk(folder, None if self.rows is None else round(self.rows * row), here)


class Forecast:
    """Estimates for the jobs that are not done."""

    def __init__(self, graph: Graph, jobs: Iterable[Job]) -> None:
        """Store the jobs that are not done."""
        self.graph = graph
        self.jobs = [job for job in jobs if hasattr(job.by, "shard")]
        self.encode = [job for job in jobs if job.rule == "encode"]
        self.sharded = [job for job in graph.jobs if hasattr(job.by, "shard")]
        self.pipelines = {job.by.dataset: graph.helpers.pipeline(job.by) for job in self.sharded}

    @cached_property
    def lengths(self) -> Mapping[str, Lengths]:
        """The lengths of the videos of each data set."""
        shards: dict[str, dict[str, None]] = {}
        for job in self.sharded:
            shards.setdefault(job.by.dataset, {})[job.by.shard] = None
        return {name: lengths(pipeline, [*shards[name]]) for name, pipeline in self.pipelines.items()}

    @property
    def videos(self) -> list[Videos]:
        """The videos that done and remaining jobs read."""
        return [
            Videos(name, len(each.seconds), sum(each.seconds.values()) / 3600, len(each.guessed))
            for name, each in self.lengths.items()
        ]

    @cached_property
    def left_s(self) -> Mapping[Job, Mapping[str, float]]:
        """The remaining seconds of each video for each job of a shard."""
        found = {}
        for job in self.jobs:
            seconds = self.lengths[job.by.dataset].seconds
            left = remaining(self.pipelines[job.by.dataset], job)
            running = progress(job) if job.rule == "extract" else None  # other jobs record each finished video
            share = running.left if running else 1.0
            found[job] = {video: share * seconds[video] for video in left if video in seconds}
        return found

    @cached_property
    def work(self) -> list[Work]:
        """The remaining work of decoding, of each network and of the speech recogniser."""
        return [work for work in (*self._decoding(), *self._networks(), *self._speech()) if work.video_hours]

    def stage_hours(self, stage: str) -> float | None:
        """Return the hours of a stage's jobs one after the other, 0 for seconds; None if they are not estimated.

        Decoding counts once: if audio and content scores are also computed, it is part of their stage.
        """
        heard, seen = self._decoding()
        match stage:
            case "media":
                return heard.cpu.hours
            case "extract":
                return seen.cpu.hours + self._here(self._networks())
            case "transcribe":
                return self._here(self._speech())
        return None if stage in UNKNOWN else 0.0

    def _here(self, work: Iterable[Work]) -> float:
        """Return the hours of work with the hardware of this machine."""
        return sum((each.gpu if self.graph.gpu and each.gpu else each.cpu).hours for each in work)

    def _decoding(self) -> tuple[Work, Work]:
        """Return the passes for audio and content scores, and those only for features; each video is decoded once."""
        heard, seen = (
            {
                (job.by.dataset, video): s
                for job in self.jobs
                if job.rule == rule
                for video, s in self.left_s[job].items()
            }
            for rule in ("media", "extract")
        )
        heard_s = sum(heard.values())
        seen_s = sum(s for video, s in seen.items() if video not in heard)
        return (
            Work("decoding, with sound and scores", heard_s / 3600, _typical("media", heard_s)),
            Work("decoding for features", seen_s / 3600, _typical("decode", seen_s)),
        )

    def _networks(self) -> Iterable[Work]:
        """Yield the work of each network; features computed while decoding count as decoding."""
        by_name: dict[str, list[Described]] = {}
        for each in self._described:
            if isinstance(each.spec, ClipSpec):
                by_name.setdefault(each.spec.name, []).append(each)
        for name, parts in by_name.items():
            video_s = sum(each.video_s for each in parts)
            gpu = _estimate(f"network.{name}.cuda", video_s, most.NETWORK_MINUTES[True] / 60)
            cpu = _estimate(f"network.{name}.cpu", video_s, most.NETWORK_MINUTES[False] / 60)
            frames = sum(each.frames for each in parts)
            per_frame_s = FRAME_S.get(getattr(parts[0].spec, "architecture", ""))
            if cpu.basis == "at most" and per_frame_s and frames:
                cpu = Estimate(frames * per_frame_s / 3600, "typical")
            yield Work(name, video_s / 3600, cpu, gpu)

    @cached_property
    def _described(self) -> "list[Described]":
        """The remaining features of each backbone and data set."""
        found = []
        for pipeline in self.pipelines.values():
            for backbone in pipeline.features.computed:
                spec = pipeline.features.spec_of(backbone)
                left = {
                    video: seconds
                    for job in self.jobs
                    if job.rule == "extract" and (job.by.dataset, job.by.spec) == (pipeline.name, spec.id)
                    for video, seconds in self.left_s[job].items()
                }
                rows = _rows(pipeline, backbone, spec, left)
                found.append(Described(pipeline, spec, sum(left.values()), rows))
        return found

    def _speech(self) -> Iterable[Work]:
        for name, pipeline in self.pipelines.items():
            video_s, engine = self._left_s(name, "transcribe"), pipeline.speech.engine
            cpu = _estimate(f"speech.{engine}.cpu", video_s, most.SPEECH_MINUTES[engine] / 60)
            on_gpu = engine in recognisers.FOLDERS
            gpu = _estimate(f"speech.{engine}.cuda", video_s, most.SPEECH_MINUTES_ON_GPU / 60) if on_gpu else None
            yield Work(f"speech of {name}, by {engine}", video_s / 3600, cpu, gpu)

    @property
    def total(self) -> tuple[Estimate, Estimate]:
        """The hours of all work without a GPU, and the GPU hours with one."""
        on_gpu = [work.gpu for work in self.work if work.gpu]
        return _sum(work.cpu for work in self.work), _sum(on_gpu)

    # Disk

    @cached_property
    def disk(self) -> list[Disk]:
        """The bytes that the jobs write, by folder."""
        found: list[Disk] = []
        for name, pipeline in self.pipelines.items():
            found.append(self._downloads(name, pipeline))
            folders = {
                "media": paths.media(name),
                "shots": paths.shots(name),
                "transcribe": paths.transcripts(name, pipeline.speech.engine),
                "thumbnails": paths.thumbnails(name),
            }
            for rule, folder in folders.items():
                per_s = BYTES_PER_S["transcripts" if rule == "transcribe" else rule]
                found.append(Disk(os.fspath(folder), round(self._left_s(name, rule) * per_s)))
        found += [each.disk for each in self._described]
        found += self._texts()
        return [each for each in found if each.bytes != 0]

    @property
    def peak_bytes(self) -> int:
        """The maximum number of bytes added to this disk at any time, as far as known."""
        return sum(each.bytes or 0 for each in self.disk if each.here)

    @property
    def free_bytes(self) -> int:
        """The free bytes on the disk of the work folder."""
        return shutil.disk_usage(".").free

    def _left_s(self, name: str, rule: str) -> float:
        return sum(sum(self.left_s[job].values()) for job in self.jobs if job.by.dataset == name and job.rule == rule)

    def _downloads(self, name: str, pipeline: Pipeline) -> Disk:
        """Return the size of downloads; if videos are not kept, the size of the largest shard."""
        by_shard, came = [], dict[str, Record]()
        for job in self.jobs:
            if job.by.dataset == name and job.rule == "videos":
                came |= available(pipeline, job.by.shard)
                listed = (video for video in pipeline.videos.members(job.by.shard) if video.url)
                fetched = [video for video in listed if not os.path.exists(pipeline.videos.place(video) or "")]
                by_shard.append(sum(video.length_s for video in fetched if video.id in self.left_s[job]))
        sized = [record for record in came.values() if record.downloader and record.duration_s]
        sized_s = sum(record.duration_s for record in sized)
        per_s = sum(record.size for record in sized) / sized_s if sized else DOWNLOAD_BYTES_PER_S
        video_s = max(by_shard, default=0.0) if pipeline.videos.dropped else sum(by_shard)
        return Disk(os.fspath(paths.videos(name)), round(video_s * per_s))

    def _texts(self) -> Iterable[Disk]:
        """Yield the size of text embeddings, estimated from existing ones."""
        by_folder: dict[Path, int] = {}
        for job in self.encode:
            folder = Path("features", job.by.encoder, job.by.spec, job.by.study, "texts")
            by_folder[folder] = by_folder.get(folder, 0) + 1
        for folder, n in by_folder.items():
            there = [path.stat().st_size for path in folder.rglob("*") if path.is_file()] if folder.is_dir() else []
            stores = len(list(folder.glob("*/spec.json"))) if there else 0
            yield Disk(os.fspath(folder), sum(there) * n // stores if stores else None)


def _rows(pipeline: Pipeline, backbone: str, spec: Spec, left: Mapping[str, float]) -> float | None:
    """Return the number of feature rows for the remaining seconds of each video, see ``Described``."""
    if not left or not pipeline.features.describes_clips(backbone):
        hop = spec.hop if isinstance(spec, ClipSpec) else 1
        return sum(left.values()) * getattr(spec, "fps", 1) / hop
    if not all(path.exists() for path in pipeline.features.inputs):
        return None
    clips = pipeline.features.clips(backbone)
    return sum(len(clips.get(video, [])) for video in left)


def _typical(work: str, video_s: float) -> Estimate:
    measured = rates.measured(work)
    if measured is None:
        return Estimate(video_s * TYPICAL[work] / 3600, "typical")
    return Estimate(video_s * measured / 3600, "measured")


def _estimate(work: str, video_s: float, most_per_s: float) -> Estimate:
    measured = rates.measured(work)
    if measured is None:
        return Estimate(video_s * most_per_s / 3600, "at most")
    return Estimate(video_s * measured / 3600, "measured")


def _sum(estimates: Iterable[Estimate]) -> Estimate:
    """Return the sum, with the least certain basis of its parts."""
    order: tuple[Basis, ...] = ("measured", "typical", "at most")
    found = [each for each in estimates if each.hours]
    basis: Basis = max((each.basis for each in found), key=order.index, default="measured")
    return Estimate(sum(each.hours for each in found), basis)

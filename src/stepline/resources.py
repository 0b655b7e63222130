"""The memory, time, disk and GPUs that a rule's job requests, estimated from its inputs and networks.

A scheduler also counts Snakemake's own two processes. If memory or time is too low, the next attempt requests more.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil
from pathlib import Path

from stepline.asr import weights as recognisers
from stepline.backbones import registry
from stepline.backbones.weights import place, present, weights_of
from stepline.benchmark import Job
from stepline.config import Config
from stepline.pipeline import Pipeline
from stepline.spec import ClipSpec

MB = 10**6
CORE_MB = 1000
"""Without networks: a job uses 210 to 240 MB, and Snakemake another 250 MB."""
NETWORK_MB = 2500
"""With torch: fitting a head uses 510 MB, encoding a recording's texts 640 MB, a network's activations more."""
CAPTIONS_MB = 10_000
"""SPICE's Java program may use 8 GB."""
LOADING = 3.5
"""Bytes of memory per byte of weights: the file, and the network, which may be float32 when the file is float16."""
ROW_BYTES = 2048
"""A second of features: 1,024 float16 values. The files are memory-mapped, and some schedulers count mapped pages."""
SPEECH_MINUTES = {"pocketsphinx": 25, "deepgram": 3, "whisper": 90, "faster_whisper": 45}
"""Engine -> minutes per hour of audio on a CPU."""
SPEECH_MINUTES_ON_GPU = 10
LOCAL = "table", "pairs", "picture", "results", "report", "summary", "page"
"""Rules that run on the login node: their jobs take less time than a cluster needs to start them."""
NETWORK_MINUTES = {True: 15, False: 600}
"""Whether there is a GPU -> minutes per hour of video and network. A retry keeps the results so far and continues."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """The resources that a job requests.

    mem_mb, disk_mb: MB of 10^6 bytes; the disk is the work folder's. runtime: minutes of wall time. gpu: the number of
    GPUs, or None.
    """

    mem_mb: int = CORE_MB
    runtime: int = 30
    disk_mb: int = 100
    gpu: int | None = None


LIGHT = Resources()
"""The request of jobs that only read records and write tables and pages."""


def of_videos(pipeline: Pipeline, shard: str) -> Resources:
    """Return the resources for downloading a shard."""
    return Resources(runtime=60 + 12 * pipeline.videos.hours(shard), disk_mb=pipeline.videos.disk_mb("videos", shard))


def of_media(pipeline: Pipeline, shard: str) -> Resources:
    """Return the resources for a shard's audio and content scores, or for its pictures."""
    return Resources(
        mem_mb=CORE_MB + _decoder_mb(pipeline.config),
        runtime=30 + 10 * pipeline.videos.hours(shard),
        disk_mb=pipeline.videos.disk_mb("media", shard),
    )


def of_transcribe(pipeline: Pipeline, shard: str, *, gpu: bool) -> Resources:
    """Return the resources for the transcripts of a shard. gpu: whether there is one."""
    engine, weights = pipeline.speech.engine, 0
    gpu = gpu and engine in recognisers.FOLDERS
    if engine in recognisers.FOLDERS:
        found = recognisers.locate(engine, pipeline.config["asr"][engine]["model"])
        weights = _bytes([found] if found else [])
    return Resources(
        mem_mb=(NETWORK_MB if weights else CORE_MB) + ceil(LOADING * weights / MB),
        runtime=30 + (SPEECH_MINUTES_ON_GPU if gpu else SPEECH_MINUTES[engine]) * pipeline.videos.hours(shard),
        gpu=1 if gpu else None,
    )


def of_extract(pipeline: Pipeline, shard: str, *, gpu: bool) -> Resources:
    """Return the resources for a job of a shard's features, of all configured backbones at once.

    gpu: whether there is one. runtime is the job's share: a shard's jobs run one after another in a group, whose
    runtime is their sum.
    """
    features = pipeline.features
    specs = [spec for spec in map(features.spec_of, features.computed) if isinstance(spec, ClipSpec)]
    minutes = 60 + (10 + len(specs) * NETWORK_MINUTES[gpu]) * pipeline.videos.hours(shard)
    weights = sum(map(_weights_bytes, {name for spec in specs for name in spec.weights}))
    return Resources(
        mem_mb=(NETWORK_MB if specs else CORE_MB)
        + _decoder_mb(pipeline.config) * pipeline.config["features"]["decoders"]
        + ceil(LOADING * weights / MB),
        runtime=ceil(minutes / len(features.computed)),
        disk_mb=pipeline.videos.disk_mb("extract", shard) * len(features.computed),
        gpu=1 if gpu and specs else None,
    )


def of_encode(encoder: str) -> Resources:
    """Return the resources for encoding the texts of a recording."""
    tower = registry.towers().get(encoder)
    weights = sum(map(_weights_bytes, tower.weights)) if tower else 0
    return Resources(mem_mb=NETWORK_MB + ceil(LOADING * weights / MB))


def of_entry(job: Job, pipelines: Iterable[Pipeline], *, fit: bool, gpu: bool) -> Resources:
    """Return the resources for a fit or a prediction.

    pipelines: of the benchmark's videos. gpu: whether there is one.
    """
    kind, pipelines = job.entry.kind, [*pipelines]
    decoder_mb = max((_decoder_mb(pipeline.config) for pipeline in pipelines), default=0) if kind.decoded else 0
    hours = sum(pipeline.videos.all_hours for pipeline in pipelines) if job.entry.features else 0
    network = kind.environment != "core"
    return Resources(
        mem_mb=(NETWORK_MB if network else CORE_MB) + decoder_mb + hours * 3600 * ROW_BYTES // MB,
        runtime=1440 if kind.decoded else (480 if fit else 120) if kind.gpu else 30,
        gpu=1 if gpu and kind.gpu else None,
    )


def of_score(job: Job) -> Resources:
    """Return the resources for the scores of an entry."""
    captions = job.entry.kind.scored_in != "core"
    return Resources(mem_mb=CAPTIONS_MB if captions else CORE_MB, runtime=240 if captions else 10)


def _decoder_mb(config: Config) -> int:
    memory: int = config["media"]["limits"]["memory_mb"]
    return memory


def _weights_bytes(name: str) -> int:
    weights = weights_of(name)
    folder = place(weights)
    return _bytes(folder / each for file in weights.files for each in present(folder, file)) if folder else 0


def _bytes(paths: Iterable[Path]) -> int:
    files = [file for path in paths for file in ([*path.iterdir()] if path.is_dir() else [path])]
    return sum(file.stat().st_size for file in files)

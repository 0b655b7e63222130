"""The remaining videos of a shard's job: those without a result."""

from collections.abc import Callable
from pathlib import Path

from stepline import paths
from stepline.availability import read_manifest
from stepline.overview.graph import Job
from stepline.overview.records import available
from stepline.pipeline import Pipeline


def remaining(pipeline: Pipeline, job: Job) -> list[str]:
    """Return the videos of its shard that a job still has to process and that exist or may be downloaded."""
    name, shard = pipeline.name, job.by.shard
    came = available(pipeline, shard)
    wanted = [video.id for video in pipeline.videos.members(shard)]
    if job.rule == "videos":
        return [video for video in wanted if video not in came or came[video].status != "present"]
    listed = [video for video in wanted if video not in came or came[video].status == "present"]
    if job.rule == "extract":
        described = _described(Path(job.makes[0]))
        return [video for video in listed if video not in described]
    folders: dict[str, Callable[[str], Path]] = {
        "media": lambda video: paths.media(name) / video / "media.json",
        "shots": lambda video: paths.shots(name) / f"{video}.parquet",
        "transcribe": lambda video: pipeline.speech.folder / f"{video}.json",
        "thumbnails": lambda video: paths.thumbnails(name) / video,
    }
    kept = folders.get(job.rule)
    return [video for video in listed if kept and not kept(video).exists()]


def _described(manifest: Path) -> set[str]:
    """Return the videos with feature rows, from the record of the last job."""
    made = read_manifest(manifest) if manifest.exists() else {}
    return {video for video, of in made.items() if of.get("n_rows")}

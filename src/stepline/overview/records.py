"""Detection of done jobs: their outputs exist and, according to the records, match the configured options."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepline import paths
from stepline.availability import Record, read_availability, read_manifest
from stepline.helpers import Helpers
from stepline.io import read_json
from stepline.media import REVISION
from stepline.overview.graph import Graph, Job
from stepline.pipeline import Pipeline
from stepline.pipeline.lost import lost


def to_do(graph: Graph) -> dict[Job, str]:
    """Return the jobs that are not done, each with the reason.

    A job is not done if an output is missing, if its record contains other options, videos or files than the current
    configuration, or if a job that it depends on is not done. File times are not compared.
    """
    gone = {record: reason for pipeline in graph.helpers.pipelines.values() for record, reason in lost(pipeline)}
    found: dict[Job, str] = {}
    for job in graph.jobs:
        reason = (
            next((f"{path} does not exist yet" for path in job.makes if not Path(path).exists()), "")
            or next((gone[path] for path in job.makes if path in gone), "")
            or _CHECKS.get(job.rule, _nothing)(graph.helpers, job)
            or next((f"after {each.rule} {each.name}".rstrip() for each in job.after if each in found), "")
        )
        if reason:
            found[job] = reason
    return found


def _nothing(_: Helpers, __: Job) -> str:
    return ""


def _videos(helpers: Helpers, job: Job) -> str:
    """Compare the videos of a shard and their source files with the record."""
    videos, shard = helpers.pipeline(job.by).videos, job.by.shard
    known = read_availability(job.makes[0])
    if known.keys() != {video.id for video in videos.members(shard)}:
        return "the list of videos changed"
    fetches = paths.fetches(job.by.dataset, shard)
    if videos.again(shard) != (read_json(fetches)["again"] if fetches.exists() else 0):
        return "videos no longer exist"
    stamps = videos.stamps(shard)
    changed = [video for video, record in known.items() if _changed(record, stamps.get(video, ""))]
    return f"the file of {changed[0]} was added, changed or removed" if changed else ""


def _changed(record: Record, stamp: str) -> bool:
    return stamp != record.stamp if record.status == "present" else bool(stamp) and record.status == "missing"


def _of_members(helpers: Helpers, job: Job) -> str:
    members = helpers.pipeline(job.by).videos.members(job.by.shard)
    return "" if {video.id for video in members} == read_manifest(job.makes[0]).keys() else "the list of videos changed"


def _media(helpers: Helpers, job: Job) -> str:
    made = read_manifest(job.makes[0]).values()
    if any(each.get("revision", REVISION) != REVISION for each in made):
        return "sound and scores are from another revision"
    return _of_members(helpers, job)


def _transcribe(helpers: Helpers, job: Job) -> str:
    done = helpers.pipeline(job.by).speech.is_transcribed(job.by.shard)
    return "" if done else "the recogniser or the videos changed, or a video failed"


def _predict(helpers: Helpers, job: Job) -> str:
    """Compare the spec of predictions, which their checkpoints share, with the configured spec."""
    made = paths.predictions(job.by.study, job.by.release, job.by.entry, job.by.context).with_suffix(".json")
    plan: Any = helpers.plan(job.by)
    same = not made.exists() or read_json(made).get("spec") == plan.spec(helpers.job(job.by))
    return "" if same else "the options of the entry changed"


_CHECKS: dict[str, Callable[[Helpers, Job], str]] = {
    "videos": _videos,
    "media": _media,
    "shots": _of_members,
    "thumbnails": _of_members,
    "extract": _of_members,
    "transcribe": _transcribe,
    "fit": _predict,
    "predict": _predict,
}
"""Functions that return why a job with existing outputs is not done; "" if it is done."""


def available(pipeline: Pipeline, shard: str) -> dict[str, Record]:
    """Return the availability records of a shard; {} if it has not been fetched."""
    path = paths.availability(pipeline.name, shard)
    return read_availability(path) if path.exists() else {}

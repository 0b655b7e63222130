"""How far a run is: which jobs are done, running, failed or waiting, and what became of the videos."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stepline import paths
from stepline.availability import read_manifest
from stepline.media.timeline import described
from stepline.overview.graph import Graph, Job
from stepline.overview.records import available
from stepline.overview.running import progress
from stepline.pipeline import Pipeline

Word = Literal["done", "running", "failed", "waiting"]
WORDS: tuple[Word, ...] = ("done", "running", "failed", "waiting")
ERROR, STOPPED = " ERROR error: ", "ended by SIGTERM"
"""In the last line of the log of a job that failed, and what follows where it was asked to end."""


@dataclass(frozen=True)
class State:
    """The state of a job. reason: why it failed or is not done; how far it is, where it says so while it runs."""

    word: Word
    reason: str = ""


def states(graph: Graph, left: Mapping[Job, str]) -> dict[Job, State]:
    """Return the state of each job. left: those that are not done, with the reason.

    running: a process holds the lock of its log. failed: the log ends with an error.
    """
    return {job: _state(job, left) for job in graph.jobs}


def _state(job: Job, left: Mapping[Job, str]) -> State:
    if (running := progress(job)) is not None:
        return State("running", str(running))
    if job not in left:
        return State("done")
    error = _error(Path(job.log))
    return State("failed", error) if error and not error.startswith(STOPPED) else State("waiting", error or left[job])


def _error(log: Path) -> str:
    """Return the error with which a log ends; "" where it does not."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines() if log.is_file() else []
    return lines[-1].partition(ERROR)[2] if lines else ""


# Videos


@dataclass(frozen=True)
class Became:
    """What became of a video. status: of its record, ``partial``, or ``waiting`` where it was not looked for."""

    status: str
    reason: str = ""


def videos(pipeline: Pipeline) -> dict[str, Became]:
    """Return what became of each listed video, by the records that there are."""
    found: dict[str, Became] = {}
    for shard in pipeline.videos.all_shards:
        came = available(pipeline, shard)
        made = _made(pipeline, shard)
        for video in pipeline.videos.members(shard):
            if video.id not in came:
                found[video.id] = Became("waiting")
            elif came[video.id].status != "present":
                found[video.id] = Became(came[video.id].status, _without(came[video.id].reason, came[video.id].path))
            else:
                found[video.id] = made.get(video.id, Became("present"))
    return found


def _made(pipeline: Pipeline, shard: str) -> dict[str, Became]:
    """Return what the stages made of the videos that are there.

    The first stage that reads them says how far each can be read: sound and scores, else features. The others add what
    failed.
    """
    name, features = pipeline.name, pipeline.features
    listed = {"media": paths.manifest(paths.media(name), shard)} if pipeline.demand.media else {}
    listed |= {each: paths.features_manifest(name, shard, features.spec_of(each)) for each in features.computed}
    listed |= {"transcript": paths.manifest(pipeline.speech.folder, shard)}
    found: dict[str, Became] = {}
    for stage, path in listed.items():
        for video, of in read_manifest(path).items() if path.exists() else ():
            if video not in found:
                partial = of.get("gaps")
                found[video] = Became("partial", described(partial)) if partial else Became(of["status"], of["reason"])
            elif of["status"] == "failed" != found[video].status:
                reasons = [found[video].reason, f"{stage}: {of['reason']}"]
                found[video] = Became(found[video].status, "; ".join(filter(None, reasons)))
    return found


def _without(reason: str, path: str) -> str:
    """Return a reason without the path of its file, so that equal reasons are equal."""
    return reason.replace(f"{path}: ", "") if path else reason

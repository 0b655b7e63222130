"""The lines at the end of a run: its results, and its failures."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from snakemake_logger_plugin_stepline.cluster import End
from snakemake_logger_plugin_stepline.stages import Job
from stepline.availability import read_manifest
from stepline.errors import SteplineError

NAMED = 5
"""The number of items of a list that are printed."""
KILLED = "it ended without a message: its process was killed, or memory or the disk was full"


def made(jobs: Iterable[Job]) -> Iterator[str]:
    """Yield a line for each folder with the existing pages, tables and figures of jobs."""
    files = defaultdict(list)
    for path in (Path(output) for job in jobs for output in job.outputs):
        if path.parts[0] == "results" and len(path.parts) == 3 and path.suffix and path.exists():
            files[path.parent].append(path.name)
    for folder, names in files.items():
        names.sort(key=lambda name: (not name.endswith(".html"), name))
        yield f"  {folder}/{', '.join(some(names))}"


def some(items: Sequence[str], where: str = "") -> list[str]:
    """Return the first items, and a text with the number of others. where: a path that lists all of them."""
    more = f"and {len(items) - NAMED} more{f': {where}' if where else ''}"
    return [*items[:NAMED], *([more] if len(items) > NAMED else [])]


def of_videos(jobs: Iterable[Job]) -> Iterator[str]:
    """Yield lines on absent, failed and partial videos, from the records that are inputs or outputs of jobs."""
    for dataset, videos in sorted(_videos(jobs).items()):
        troubles = {video: trouble for video, trouble in sorted(videos.items()) if trouble}
        if not troubles:
            continue
        counts = Counter(trouble.partition(":")[0] for trouble in troubles.values())
        counted = ", ".join(f"{n} {status}" for status, n in counts.most_common())
        yield f"{dataset}: {len(videos)} videos, of which {counted}"
        summary = Path("results", dataset, "videos.csv")
        lines = [f"{video}: {trouble}" for video, trouble in troubles.items()]
        where = str(summary) if summary.exists() else f"datasets/{dataset}/availability/"
        yield from (f"  {line}" for line in some(lines, where))


def _videos(jobs: Iterable[Job]) -> dict[str, dict[str, str]]:
    """Return the problem of each video of each data set, "" if there is none."""
    files = {Path(file) for job in jobs for file in (*job.inputs, *job.outputs)}
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for path in sorted(files, key=lambda path: ("availability" not in path.parts, path)):
        match path.parts:
            case ["datasets", dataset, "availability", _]:
                stage = ""
            case ["datasets", dataset, stage, *_, "manifests", _]:
                pass
            case ["features", stage, _, "manifests", name] if name.count(".") == 2:
                dataset = name.partition(".")[0]
            case _:
                continue
        try:
            records = read_manifest(path)
        except (OSError, SteplineError):
            continue
        for video, record in records.items():
            if not found[dataset].get(video):
                found[dataset][video] = _trouble(stage, record)
    return found


def _trouble(stage: str, record: dict[str, object]) -> str:
    status, reason = record["status"], record.get("reason")
    if status == "failed" or (not stage and status != "present"):
        return f"{status}: {f'{stage}: ' if stage else ''}{reason}"
    if "unheard" in record:
        return f"partial: {reason}"
    return f"partial: {len(gaps)} gaps" if isinstance(gaps := record.get("gaps"), list) and gaps else ""


@dataclass(frozen=True)
class Failed:
    """A job that failed, and how it ended."""

    job: Job
    end: End


def failures(failed: Iterable[Failed]) -> Iterator[str]:
    """Yield the reasons of failed jobs, each with the jobs, the scheduler's job and the logs that are not empty.

    The jobs of a group ended together: they have one reason, or those with an error in their log have their own.
    """
    groups: defaultdict[str, list[Failed]] = defaultdict(list)
    for each in failed:
        groups[each.end.number or each.end.said or each.job.message].append(each)
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for together in groups.values():
        for jobs, reason in _reasons([each.job for each in together], together[0].end):
            lines[reason] += [job.message for job in jobs]
    yield from (f"  {'; '.join(some(sorted(names)))}: {reason}" for reason, names in lines.items())


def _reasons(jobs: Sequence[Job], end: End) -> Iterator[tuple[Sequence[Job], str]]:
    told, begun = end.reason(jobs[0].rule), [job for job in jobs if job.written()]
    if told or not begun:
        yield jobs, _with_logs(told or KILLED, begun, end)
        return
    causes = [job for job in begun if job.error()] or [max(begun, key=lambda job: os.stat(job.log).st_mtime)]
    for job in causes:
        yield [job], _with_logs(job.error() or f"{KILLED}, after the line: {job.did()}", [job], end)
    if others := [job for job in jobs if job not in causes]:
        yield others, f"not done: {causes[0].message} failed first, in the same job"


def _with_logs(reason: str, begun: Iterable[Job], end: End) -> str:
    logs = [job.log for job in begun] + ([os.path.relpath(end.log)] if os.path.exists(end.log) else [])
    where = ", ".join([end.job, *some(logs)] if end.number else some(logs))
    return f"{reason}{f' ({where})' if where else ''}"

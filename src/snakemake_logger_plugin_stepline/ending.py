"""The lines at the end of a run: its results, and its failures."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from snakemake_logger_plugin_stepline.stages import Job, reason_of
from stepline.availability import read_manifest
from stepline.errors import SteplineError

NAMED = 5
"""The number of items of a list that are printed."""


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


def failures(failed: Iterable[Job]) -> Iterator[str]:
    """Yield a line on each failed job: its message, the reason, and its log unless that is empty."""
    for job in failed:
        log = Path(job.log)
        written = log.is_file() and log.stat().st_size > 0
        yield f"  {job.message}: {reason_of(job.log)}{f' ({log})' if written else ''}"

"""What jobs read: files of other jobs only where these, or jobs that waited for these, made a declared input."""

import json
import os
import re
from pathlib import Path
from typing import Any

from tests import traces

WRITERS = ".snakemake/writers.json"
"""By file, the logs of the jobs that wrote it, in all runs in the folder."""
ALLOWED = {
    r".* \.stepline/.*": "kept by all jobs for each other: sha256 of files, whether a host answers",
    r".* datasets/[^/]+/transcripts/[^/]+/answers/.*": "answers that are paid for, by the sha256 of what was asked",
    r"logs/extract/.*/(.+)\.(\d+)\.log features/[^/]+/[^/]+/\1/\2(\.parts)?/.*": "one decode is for all backbones",
    r".* features/[^/]+/[^/]+/[^/]+/texts/[^/]+(\.swap\.lock|/.*)": "jobs add texts to one store: each finds its own",
    r".* datasets/[^/]+/shards\.csv": "a video keeps its shard, and one without is given the same by all",
    r"logs/videos/(.+)\.(\d+)\.log datasets/\1/dropped/\2\.json": "what was deleted in an earlier run and comes again",
}
"""What a job may read whoever wrote it: pattern of its log and the file -> why the order of jobs changes no result."""
AHEAD = re.compile(r"logs/(?:extract/.*|media)/(.+)\.(\d+)\.log datasets/\1/(media|shots|thumbnails)/.*")
"""What one pass makes for another stage, whose job finds it done, or makes the same: it counts as that job's too."""


def undeclared(traced: Path, folder: Path) -> list[str]:
    """Return each read of a file that its job does not declare, of the jobs in ``folder`` since the last call."""
    kept = folder / WRITERS
    writers: dict[str, list[str]] = json.loads(kept.read_text()) if kept.exists() else {}
    read: dict[str, set[str]] = {}
    for log, events in traces.jobs(traced, folder):
        opened, written = _seen(events, folder)
        read.setdefault(log, set()).update(opened)
        for path in written:
            ahead = AHEAD.fullmatch(f"{log} {path}")
            of_stage = [f"logs/{ahead[3]}/{ahead[1]}.{ahead[2]}.log"] if ahead else []
            writers[path] = sorted({*writers.get(path, []), log, *of_stage})
    if not read:
        return []
    kept.write_text(json.dumps(writers))
    ancestors = waited(folder, writers)
    return [
        f"{log} reads {path}, which {' and '.join(by)} wrote"
        for log in sorted(read.keys() & ancestors.keys())
        for path in sorted(read[log])
        if (by := writers_of(writers, path))
        and not ancestors[log] & {*by}
        and not any(re.fullmatch(pattern, f"{log} {path}") for pattern in ALLOWED)
    ]


def writers_of(writers: dict[str, list[str]], path: str) -> list[str]:
    """Return the logs of the jobs that wrote a file, or moved a folder with it into place."""
    return next((writers[each] for each in (path, *map(str, Path(path).parents)) if each in writers), [])


def records(folder: Path) -> list[dict[str, Any]]:
    """Return what Snakemake keeps of all outputs in a folder: rule, log, inputs and command of the last job of each."""
    kept = (path for path in (folder / ".snakemake/metadata").rglob("*") if path.is_file())
    return [json.loads(path.read_bytes()) for path in kept]


def waited(folder: Path, writers: dict[str, list[str]]) -> dict[str, set[str]]:
    """Return for each job, by its log, that and the logs of all that it waited for: of its inputs, and theirs."""
    direct = {
        log: {by for path in record["input"] for by in writers_of(writers, os.path.normpath(path))}
        for record in records(folder)
        for log in record["log"]
    }
    every = {log: {log} for log in direct}
    for found in every.values():
        todo = [*found]
        while todo:
            more = direct.get(todo.pop(), set()) - found
            found |= more
            todo += more
    return every


def _seen(events: list[traces.Event], folder: Path) -> tuple[set[str], set[str]]:
    """Return the paths in ``folder`` that a job opened to read, and those that it wrote, moved or linked into place."""
    inside = [
        [kind, *(os.path.relpath(os.path.join(folder, path), folder) for path in paths)] for kind, *paths in events
    ]
    read, written = ({path for kind, path, *_ in inside if kind == wanted} for wanted in ("read", "write"))
    for old, new in (paths for kind, *paths in inside if kind == "rename"):
        written |= {new} | {new + path.removeprefix(old) for path in written if path.startswith(f"{old}/")}
    return read, {path for path in written if not path.startswith("../")}

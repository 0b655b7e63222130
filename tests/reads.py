"""What jobs read: files of another job only where a declared input stands for that job, or for one that it waited for.

Opens are seen by strace where it is installed and may trace. Elsewhere Python's audit hook sees them, but for those of
libraries that open files themselves: Parquet, safetensors, video.
"""

import codecs
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

CALLS = "open,openat,openat2,creat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,clone,clone3,fork,vfork"
STRACE = "strace", "-q", "-y", "-ff", "--seccomp-bpf", "-e", f"trace=?{CALLS.replace(',', ',?')}", "-o"
PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
WRITERS = ".snakemake/writers.json"
"""By file, the logs of the jobs that wrote it, in all runs in the folder."""
ALLOWED = {
    r".* \.stepline/.*": "kept by all jobs for each other: sha256 of files, whether a host answers",
    r".* datasets/[^/]+/transcripts/[^/]+/answers/.*": "answers that are paid for, by the sha256 of what was asked",
    r"logs/extract/.*/(.+)\.(\d+)\.log features/[^/]+/[^/]+/\1/\2(\.parts)?/.*": "one decode makes all of a shard's rows",
    r"logs/videos/(.+)\.(\d+)\.log datasets/\1/dropped/\2\.json": "what was deleted in an earlier run and comes again",
}
"""What a job may read whoever wrote it: pattern of its log and the file -> why the order of jobs changes no result."""


def tracing(traces: Path) -> list[str]:
    """Return what stands before a command to have all its opens traced into ``traces``; nothing where that fails."""
    command = [*STRACE, str(traces / "strace")]
    try:
        able = subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        able = False
    return command if able else []


def mark(traces: Path, arguments: list[str]) -> None:
    """Note that this process is the job of these arguments; where strace does not trace it, note its opens."""
    if "--log" not in arguments:
        return
    job = {"folder": os.getcwd(), "log": arguments[arguments.index("--log") + 1]}
    (traces / f"job.{os.getpid()}").write_text(json.dumps(job))
    if (traces / f"strace.{os.getpid()}").exists():
        return
    file = os.open(traces / f"audit.{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(event: str, given: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(given[0], str | bytes):
            kind, paths = "read" if given[2] & os.O_ACCMODE == os.O_RDONLY else "write", given[:1]
        elif event in ("os.rename", "os.link", "os.symlink"):
            kind, paths = "rename", given[:2]
        else:
            return
        os.write(file, json.dumps([kind, *(os.path.abspath(os.fsdecode(path)) for path in paths)]).encode() + b"\n")

    sys.addaudithook(note)


def undeclared(traces: Path, folder: Path) -> list[str]:
    """Return each read of a file that its job does not declare, of the jobs in ``folder`` since the last call."""
    kept = folder / WRITERS
    writers: dict[str, list[str]] = json.loads(kept.read_text()) if kept.exists() else {}
    read: dict[str, set[str]] = {}
    for path in traces.glob("job.*"):
        job = json.loads(path.read_text())
        if job["folder"] == str(folder):
            path.unlink()
            opened, written = _seen(traces, path.suffix[1:], folder)
            read.setdefault(job["log"], set()).update(opened)
            for each in written:
                writers[each] = sorted({*writers.get(each, []), job["log"]})
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


def waited(folder: Path, writers: dict[str, list[str]]) -> dict[str, set[str]]:
    """Return by its log each job's own and the logs of all jobs that it waited for: of its declared inputs, and so on."""
    kept = [path for path in (folder / ".snakemake/metadata").rglob("*") if path.is_file()]
    records = [json.loads(path.read_bytes()) for path in kept]
    direct = {
        log: {by for path in record["input"] for by in writers_of(writers, os.path.normpath(path))}
        for record in records
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


def _seen(traces: Path, pid: str, folder: Path) -> tuple[set[str], set[str]]:
    """Return what a job opened to read, and what it wrote, or moved or linked into place: paths in ``folder``."""
    audited, traced = traces / f"audit.{pid}", traces / f"strace.{pid}"
    while not audited.exists() and not re.search(r"^[+]{3} ", traced.read_text(), re.MULTILINE):
        time.sleep(0.01)  # strace has not yet written that the job ended
    lines = map(json.loads, audited.read_text().splitlines()) if audited.exists() else _traced(traces, pid)
    events = [
        (kind, *(os.path.relpath(os.path.join(folder, path), folder) for path in paths)) for kind, *paths in lines
    ]
    read, written = ({path for kind, path, *_ in events if kind == wanted} for wanted in ("read", "write"))
    for old, new in (paths for kind, *paths in events if kind == "rename"):
        written |= {new} | {new + path.removeprefix(old) for path in written if path.startswith(f"{old}/")}
    return read, {path for path in written if not path.startswith("../")}


def _traced(traces: Path, pid: str) -> Iterator[list[str]]:
    path = traces / f"strace.{pid}"
    for line in path.read_text().splitlines() if path.exists() else ():  # none of a process that was killed at once
        if started := re.match(r"(?:clone3?|v?fork)\(.* = (\d+)$", line):
            yield from _traced(traces, started[1])
        elif "O_DIRECTORY" not in line and (found := [os.path.join(*map(_text, each)) for each in PATH.findall(line)]):
            call = line.partition("(")[0]
            if "open" in call or call == "creat":
                yield ["write" if re.search(r"O_WRONLY|O_RDWR|^creat", line) else "read", found[0]]
            else:
                yield ["rename", found[0], found[-1]]


def _text(escaped: str) -> str:
    return os.fsdecode(codecs.escape_decode(escaped.encode())[0])  # type: ignore[attr-defined]

"""What the processes of jobs open: seen by strace where it is installed and may trace, else by Python's audit hook.

The hook does not see files that libraries open themselves: Parquet, safetensors, video.
"""

import codecs
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

CALLS = "open,openat,openat2,creat,rename,renameat,renameat2,link,linkat,symlink,symlinkat,clone,clone3,fork,vfork"
STRACE = "strace", "-q", "-y", "-f", "--seccomp-bpf", "-e", f"trace=?{CALLS.replace(',', ',?')}", "-o"
PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
STARTED = re.compile(r"(?:<... )?(?:clone3?|v?fork)\b.* = (\d+)$")
PATIENCE_S = 10.0
"""How long strace may take to write that a job ended; one that is still running is left out."""
Event = list[str]
"""``read`` or ``write`` and a path; or ``rename``, the old path and the new one: of links too."""


def tracing(traces: Path) -> list[str]:
    """Return what stands before a command to have it traced into ``traces``; nothing where that cannot be."""
    try:
        done = subprocess.run([*STRACE, os.devnull, "true"], capture_output=True, check=False)
    except FileNotFoundError:
        return []
    return [] if done.returncode else [*STRACE, str(traces / "strace")]


def mark(traces: Path, arguments: list[str]) -> None:
    """Note that this process is the job of these arguments; where strace does not trace it, note its opens."""
    if "--log" not in arguments:
        return
    name = f"{time.time_ns()}-{os.getpid()}"
    job = {"folder": os.getcwd(), "log": arguments[arguments.index("--log") + 1]}
    (traces / f"{name}.job").write_text(json.dumps(job))
    if (traces / "strace").exists():
        return
    file = os.open(traces / f"{name}.audit", os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(event: str, given: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(given[0], str | bytes):
            kind, paths = "read" if given[2] & os.O_ACCMODE == os.O_RDONLY else "write", given[:1]
        elif event in ("os.rename", "os.link", "os.symlink"):
            kind, paths = "rename", given[:2]
        else:
            return
        os.write(file, json.dumps([kind, *(os.path.abspath(os.fsdecode(path)) for path in paths)]).encode() + b"\n")

    sys.addaudithook(note)


def jobs(traces: Path, folder: Path) -> list[tuple[str, list[Event]]]:
    """Return the log and the events of each job that ended in ``folder`` since the last call."""
    found = []
    for path in traces.glob("*.job"):
        job, audited = json.loads(path.read_text()), path.with_suffix(".audit")
        if job["folder"] == str(folder):
            noted = [json.loads(line) for line in audited.read_text().splitlines()] if audited.exists() else None
            found.append((job["log"], _strace(traces).events(str(path)) if noted is None else noted))
            path.unlink()
    if (traces / "strace").exists():
        _strace(traces).forget()
    return found


@dataclass(eq=False)
class _Process:
    parent: "_Process | None" = None
    job: str = ""
    ended: bool = False
    events: list[Event] = field(default_factory=list)

    @property
    def of(self) -> str:
        """The job that it belongs to."""
        return self.job or (self.parent.of if self.parent else "")


class _Strace:
    """What strace wrote, in order: numbers of processes and threads are soon used again."""

    def __init__(self, traces: Path) -> None:
        self.path, self.read = traces / "strace", 0
        self.processes: list[_Process] = []
        self.last: dict[str, _Process] = {}

    def events(self, job: str) -> list[Event]:
        """Return what the processes of a job did."""
        until = time.monotonic() + PATIENCE_S
        while True:
            self._follow()
            members = [each for each in self.processes if each.of == job]
            if any(each.job and each.ended for each in members) or time.monotonic() > until:
                return [event for each in members for event in each.events]
            time.sleep(0.01)

    def forget(self) -> None:
        """Drop what ended, and what happened."""
        self.processes = [each for each in self.processes if not each.ended]
        for each in self.processes:
            each.events.clear()

    def _follow(self) -> None:
        with open(self.path, "rb") as file:
            file.seek(self.read)
            content = file.read()
        whole = content[: content.rfind(b"\n") + 1]
        self.read += len(whole)
        for line in whole.decode().splitlines():
            number, call = line.split(maxsplit=1)
            process = self._process(number)
            if call.startswith("+++"):
                process.ended = True
            elif started := STARTED.match(call):
                self._process(started[1], child=True).parent = process
            elif "O_DIRECTORY" not in call and (
                paths := [os.path.join(*map(_text, each)) for each in PATH.findall(call)]
            ):
                if not call.startswith(("open", "creat")):
                    process.events.append(["rename", paths[0], paths[-1]])
                elif re.search(r"O_WRONLY|O_RDWR|^creat", call):
                    process.events.append(["write", paths[0]])
                    process.job = process.job or (paths[0] if paths[0].endswith(".job") else "")
                else:
                    process.events.append(["read", paths[0]])

    def _process(self, number: str, *, child: bool = False) -> _Process:
        """Return the process of a number: a child may be seen before the call that started it returns."""
        found = self.last.get(number)
        if found is None or (found.parent if child else found.ended):
            found = self.last[number] = _Process()
            self.processes.append(found)
        return found


_strace = cache(_Strace)


def _text(escaped: str) -> str:
    return os.fsdecode(codecs.escape_decode(escaped.encode())[0])

"""The cost of a rerun after each kind of change, compared with Pixeltable and CocoIndex on equal inputs.

All systems run on one core, each in its own environment, which is created here with uv. After each change they run one
after the other. CPU time includes all their processes, also Pixeltable's Postgres. Vectors are compared with those of
plain PyAV.
"""

import argparse
import ast
import ctypes
import os
import platform
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

import av
import numpy as np
from measure import sized
from numpy.typing import NDArray
from rerun_networks import changed, commented, lines
from rerun_systems import Place, State, System, cocoindex, environment, pixeltable, stepline
from rerun_videos import clips, joined

TOLERANCE = 1e-3
"""The allowed error of a value, relative to the largest: float16, as stored by Stepline, has errors up to 0.0005."""
SUBREAPER = 36
"""Linux's PR_SET_CHILD_SUBREAPER: processes that the systems leave running become children of this one, and count."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """A set of videos. make: creates a number of files in a folder. n: the initial number.

    events: the number of ``events`` that are measured. options: further keys of Stepline's configuration.
    """

    make: Callable[[Path, int], list[Path]]
    n: int
    events: int
    options: Mapping[str, Any] = field(default_factory=dict)


SIZES = {
    "clips": Size(make=clips, n=sized(16, small=4), events=11),
    "long": Size(make=joined, n=4, events=3),
    "shards": Size(make=clips, n=64, events=3, options={"shard_hours": 0.0036}),
}
"""16 clips of 10 s; 4 videos of 10 min; 64 clips, about 8 per Stepline shard."""


@dataclass(frozen=True)
class Measured:
    """One system after one change. frames: passed to all networks. wrong: a short text, "" if everything is right."""

    cpu_s: float
    wall_s: float
    frames: int
    wrong: str


def events(n: int, files: list[Path]) -> dict[str, Callable[[State], State]]:
    """Return the events, in order. files: the n first videos, an added video and a replacement."""

    def videos(state: State, **given: Path | None) -> State:
        all_ = {**state.videos, **{f"{name}.mp4": path for name, path in given.items()}}
        return replace(state, videos={name: path for name, path in all_.items() if path})

    def networks(state: State, **given: str) -> State:
        return replace(state, networks={**state.networks, **given})

    first = {f"v{i:02}": path for i, path in enumerate(files[:n])}
    return {
        f"first run, {n} videos": lambda state: networks(videos(state, **first), a=lines("a"), b=lines("b")),
        "nothing to do": lambda state: state,
        "one video added": partial(videos, new=files[n]),
        "one replaced": partial(videos, v01=files[n + 1]),
        "one removed": partial(videos, v02=None),
        "one touched": lambda state: replace(state, touched="v03.mp4"),
        "a network changed": partial(networks, b=changed(lines("b"))),
        "the same, recomputed by hand": lambda state: replace(state, recompute="b"),
        "a network added": partial(networks, c=lines("c")),
        "a network reverted": lambda state: replace(networks(state, b=lines("b")), recompute="b"),
        "a comment edited": partial(networks, b=commented(lines("b"))),
    }


BY_HAND = "recomputed by hand"


@cache
def pictures(file: Path) -> NDArray[np.float32]:
    """Return every 25th frame as (T, 112, 112, 3), decoded from scratch."""
    with av.open(str(file)) as container:
        kept = [
            np.asarray(frame.to_image().resize((112, 112)))
            for index, frame in enumerate(container.decode(video=0))
            if index % 25 == 0
        ]
    return np.stack(kept).astype(np.float32) / np.float32(255)


@cache
def expected(file: Path, network: str) -> NDArray[np.float32]:
    """Return the vectors of a video from a network's source code."""
    names: dict[str, Any] = {}
    exec(network, names)
    os.environ["CALLS"] = os.devnull
    found: NDArray[np.float32] = names["vectors"](pictures(file))
    return found


def wrong(found: Mapping[str, NDArray[Any]], state: State) -> str:
    """Return a short description of vectors that differ from those computed from scratch, "" if all are right."""
    wanted = {
        f"{video} {name}": (file, ast.unparse(ast.parse(network)))
        for video, file in state.videos.items()
        for name, network in state.networks.items()
    }
    if odd := wanted.keys() ^ found.keys():
        return f"{len(odd)} absent or too many"
    stale = 0
    for key, made in wanted.items():
        truth = expected(*made)
        stale += found[key].shape != truth.shape or bool(abs(found[key] - truth).max() > TOLERANCE * abs(truth).max())
    return f"{stale} of {len(wanted)} stale" if stale else ""


def measured(place: Place, state: State) -> Measured:
    """Update one system and check its results."""
    place.give(state)
    calls = place.folder / "calls"
    calls.write_text("")
    command = place.system.run(place, state)
    cpu_s, wall_s = spent(partial(place.call, command))
    frames: Counter[str] = Counter()
    for line in calls.read_text().splitlines():
        name, n = line.split()
        frames[name] += int(n)
    return Measured(cpu_s, wall_s, frames.total(), wrong(place.system.vectors(place, state), state))


def spent(call: Callable[[], object]) -> tuple[float, float]:
    """Return the CPU seconds and the seconds of a call that runs programs."""
    before_s, start = used_s(), time.perf_counter()
    call()
    wall_s = time.perf_counter() - start
    return used_s() - before_s, wall_s


def used_s() -> float:
    """Return the CPU time so far of all descendants of this process, including ended ones."""
    reap()
    ended = getrusage(RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime + sum(descendants().values()) / os.sysconf("SC_CLK_TCK")


def reap() -> None:
    """Reap processes that have ended."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def descendants() -> dict[int, int]:
    """Return the CPU ticks of each descendant of this process, including its ended children."""
    parents, ticks = {}, {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(entry.parent.name)] = int(fields[1])
        ticks[int(entry.parent.name)] = sum(map(int, fields[11:15]))

    def ours(pid: int) -> bool:
        return pid in parents and (parents[pid] == os.getpid() or ours(parents[pid]))

    return {pid: own for pid, own in ticks.items() if ours(pid)}


def series(systems: list[tuple[System, Path]], folder: Path, size: Size, files: list[Path]) -> dict[str, list[Any]]:
    """Return the cost of each event for each system; None if the event does not apply to it."""
    places = []
    for i, (system, programs) in enumerate(systems):
        (folder / str(i)).mkdir(parents=True)
        places.append(Place(system, folder / str(i), programs))
    found: dict[str, list[Any]] = {"once: its database": []}
    for place in places:
        prepared = place.system.prepare and spent(partial(place.call, place.system.prepare(place)))
        found["once: its database"].append(prepared and Measured(*prepared, 0, ""))
    state = State({}, {})
    for event, change in list(events(size.n, files).items())[: size.events]:
        state = change(replace(state, touched="", recompute=""))
        found[event] = [
            measured(place, state) if place.system.prepare or BY_HAND not in event else None for place in places
        ]
        print(f"{event}, load {os.getloadavg()[0]:.1f}", *found[event], sep="\n    ", flush=True)
    return found


def cell(runs: list[Measured | None]) -> str:
    """Return a cell of the table: CPU seconds of all series, minimal seconds, frames, and whether it is right."""
    kept = [run for run in runs if run]
    if not kept:
        return ""
    cpu_s = sorted({f"{run.cpu_s:.1f}" for run in kept}, key=float)
    wall_s = min(run.wall_s for run in kept)
    right = ", ".join(sorted({run.wrong for run in kept if run.wrong})) or "yes"
    return f"{'–'.join(cpu_s[:: max(1, len(cpu_s) - 1)])} / {wall_s:.1f} / {kept[0].frames} / {right}"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", choices=SIZES, default="clips")
    parser.add_argument("--series", type=int, default=sized(2, small=1))
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir(), "stepline-reruns"))
    options = parser.parse_args()
    size = SIZES[options.size]
    ctypes.CDLL(None).prctl(SUBREAPER, 1)
    folder: Path = options.folder.resolve()
    files = size.make(folder / sized("", small="small") / options.size, size.n + 2)
    wanted = [
        stepline("Stepline, features", {"stages": ["features"]}, size.options),
        stepline("Stepline, all but speech", {"stages": ["shots", "features", "pictures"]}, size.options),
        pixeltable(),
        cocoindex(),
    ]
    systems = [(system, environment(folder / "environments", system)) for system in wanted]
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(f"{platform.processor() or platform.machine()}, load {os.getloadavg()}", flush=True)
    runs = []
    for number in range(options.series):
        shutil.rmtree(folder / "runs", ignore_errors=True)
        print(f"series {number + 1}", flush=True)
        try:
            runs.append(series(systems, folder / "runs", size, files))
        finally:
            for pid in descendants():  # Postgres
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGINT)
    print("CPU s / s / frames given to networks / right")
    print("| event | " + " | ".join(system.title for system in wanted) + " |")
    print("|---" * (1 + len(wanted)) + "|")
    for event in runs[0]:
        print(f"| {event} | " + " | ".join(cell([run[event][i] for run in runs]) for i in range(len(wanted))) + " |")


if __name__ == "__main__":
    main()

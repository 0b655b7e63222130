"""CPU seconds of calls, and a table of their ratios."""

import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TypeVar

import psutil

sys.path.insert(0, str(Path(__file__).parents[1]))  # some scripts use helpers of the tests
T = TypeVar("T")
SMALL = bool(os.environ.get("PERF_SMALL"))
"""Whether the scripts run at a small size, to see that they work. The figures then mean nothing."""


def sized(usual: T, *, small: T) -> T:
    """Return the size of a measurement: ``small`` if ``PERF_SMALL`` is set."""
    return small if SMALL else usual


def show(title: str, peer: str, calls: dict[str, Callable[[], object]], *, repeats: int = 5) -> None:
    """Print the median CPU time of each call, in seconds, and its ratio to the time of ``peer``.

    The calls alternate, ``repeats`` times after a warm-up run. CPU time includes child processes.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(sized(repeats, small=1) + 1):
        for name, call in calls.items():
            start = cpu_s()
            call()
            if repeat:
                times[name].append(cpu_s() - start)
    print(f"{title}\n{'':60}{'CPU s':>10}{'ratio':>10}")
    for name, all_s in times.items():
        print(f"{name:60}{median(all_s):10.3f}{median(all_s) / median(times[peer]):10.2f}")
    print(flush=True)


def cpu_s() -> float:
    """Return the CPU time of this process and its descendants so far, ended or running, in seconds."""
    running = [each.cpu_times()[:4] for each in psutil.Process().children(recursive=True)]
    ended = [resource.getrusage(whose)[:2] for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(map(sum, running + ended))

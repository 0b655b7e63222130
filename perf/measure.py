"""CPU seconds of calls, and a table of their ratios."""

import ctypes
import resource
import sys
from collections.abc import Callable
from statistics import median

MALLOPT = {"M_TRIM_THRESHOLD": (-1, 64 << 20), "M_MMAP_THRESHOLD": (-3, 32 << 20), "M_MMAP_MAX": (-4, 65_536)}
"""What glibc comes to by itself where large blocks are freed: parameters of malloc.h and their values."""


def show(title: str, peer: str, calls: dict[str, Callable[[], object]], *, repeats: int = 5) -> None:
    """Print the median CPU time of each call, in seconds, and its ratio to that of ``peer``.

    The calls are run in turn, ``repeats`` times after one run that does not count. Their child processes count. Each
    begins with glibc's memory as it is by itself, whatever the call before has set.
    """
    times: dict[str, list[float]] = {name: [] for name in calls}
    for repeat in range(repeats + 1):
        for name, call in calls.items():
            if sys.platform == "linux":
                for parameter, value in MALLOPT.values():
                    ctypes.CDLL(None).mallopt(parameter, value)
            start = cpu_s()
            call()
            if repeat:
                times[name].append(cpu_s() - start)
    print(f"{title}\n{'':60}{'CPU s':>10}{'ratio':>10}")
    for name, all_s in times.items():
        print(f"{name:60}{median(all_s):10.3f}{median(all_s) / median(times[peer]):10.2f}")
    print(flush=True)


def cpu_s() -> float:
    """Return the CPU time of this process and its ended children so far, in seconds."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)

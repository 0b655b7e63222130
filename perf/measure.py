"""CPU seconds of calls, and a table of their ratios."""

import time
from collections.abc import Callable


def cpu_s(call: Callable[[], object], *, repeats: int = 3) -> float:
    """Return the least CPU time of ``call`` in this process and its threads, in seconds."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return min(times)


def show(title: str, peer: str, times_s: dict[str, float]) -> None:
    """Print each time and its ratio to that of ``peer``."""
    print(f"{title}\n{'':44}{'CPU s':>10}{'ratio':>10}")
    for name, time_s in times_s.items():
        print(f"{name:44}{time_s:10.3f}{time_s / times_s[peer]:10.3f}")
    print()

"""The work of a GPU during a call."""

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset"}


class Kernel(NamedTuple):
    """A kernel, copy or fill on the GPU, in seconds from an arbitrary start."""

    name: str
    start_s: float
    end_s: float


def kernels(call: Callable[[], object]) -> list[Kernel]:
    """Return what the GPU does in a call, in order of start; nothing if there is none."""
    activity = ProfilerActivity.CUDA if torch.cuda.is_available() else ProfilerActivity.CPU
    with profile(activities=[activity]) as profiled:
        call()
    with TemporaryDirectory() as folder:
        path = Path(folder, "trace.json")
        profiled.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8"))["traceEvents"]
    found = [
        Kernel(event["name"], event["ts"] / 1e6, (event["ts"] + event["dur"]) / 1e6)
        for event in events
        if event.get("cat") in CATEGORIES
    ]
    return sorted(found, key=lambda each: each.start_s)


def busy_s(found: list[Kernel]) -> float:
    """Return the time in which at least one of them runs."""
    total_s = end_s = 0.0
    for each in found:
        total_s += max(0.0, each.end_s - max(each.start_s, end_s))
        end_s = max(end_s, each.end_s)
    return total_s

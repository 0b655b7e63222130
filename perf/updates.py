"""Seconds of a head's updates, compared with only its forward and backward passes on prepared batches."""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import torch
from measure import cpu_s
from torch import Tensor

from stepline.models import training

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def now_s() -> float:
    """Return the current time in seconds: wall time for a GPU, CPU time otherwise."""
    if DEVICE == "cpu":
        return cpu_s()
    torch.cuda.synchronize()
    return time.perf_counter()


def fitted(
    kept: torch.nn.Module,
    optimiser: torch.optim.Optimizer,
    losses: Callable[[Tensor], Iterable[Tensor]],
    batches: Iterator[Tensor],
    updates: int,
    *,
    after: Callable[[], None] = lambda: None,
    **settings: Any,
) -> float:
    """Return the mean seconds per update in a fit, after a warm-up update. settings: of ``train``."""
    marks: list[float] = []

    def mark(_: int) -> None:
        after()
        marks.append(now_s())

    with tempfile.TemporaryDirectory() as folder:
        training.train(
            kept.state_dict(),
            optimiser,
            losses,
            batches,
            Path(folder, "fit.safetensors"),
            epochs=1,
            updates=updates + 1,
            rate=lambda _: 1e-5,
            every=updates,
            resume="",
            what="updates",
            after=mark,
            **settings,
        )
    return (marks[-1] - marks[0]) / updates


def passes(model: torch.nn.Module, batches: Iterable[Callable[[], Iterable[Tensor]]]) -> float:
    """Return the mean seconds of the passes of a batch, after a warm-up. batches: functions that return losses."""
    marks = []
    for losses in batches:
        model.zero_grad()
        for loss in losses():
            loss.backward()  # type: ignore[no-untyped-call]
        marks.append(now_s())
    return (marks[-1] - marks[0]) / (len(marks) - 1)


def show(what: str, alone: Callable[[], float], fit: Callable[[], float], *, repeats: int, epoch: int = 0) -> None:
    """Print both, the medians of alternating repeats, and their ratio. epoch: updates per epoch; 0 omits the hours."""
    times: dict[str, list[float]] = {"only the passes": [], "in a fit": []}
    for _ in range(repeats):
        for all_s, way in zip(times.values(), (alone, fit), strict=True):
            all_s.append(way())
    print(f"{what:52}{'s':>10}{'ratio':>10}{'h an epoch' if epoch else '':>12}")
    for name, all_s in times.items():
        ratio, hours = median(all_s) / median(times["only the passes"]), epoch * median(all_s) / 3600
        print(f"{name:52}{median(all_s):10.3f}{ratio:10.2f}{f'{hours:12.2f}' if epoch else ''}", flush=True)

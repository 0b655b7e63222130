"""Training of HiREST's joint model at the published size, beside the network's passes alone; decoding.

With a GPU it runs there, and says seconds; without one, CPU seconds.
"""

import itertools
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np
import torch
from measure import cpu_s

from stepline.models import training
from stepline.models.hirest_joint import Joint
from stepline.models.hirest_joint_config import JointConfig
from stepline.models.hirest_joint_training import LOSSES, Example, Tables, mixed

VIDEOS, STEPS, SAID, BATCH = 24, 5, 6, 5
"""Videos of 240 to 340 s, the steps of each, the words of each step; this many steps give the published mixing."""
EPOCH = 173 + 826 + 829
"""Published updates of an epoch."""
UPDATES, REPEATS = 16, 3
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def examples(config: JointConfig) -> list[Example]:
    """Return videos of random rows with random steps."""
    rng = np.random.default_rng(0)

    def rows(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape, dtype=np.float32)

    made = []
    for _ in range(VIDEOS):
        n = int(rng.integers(240, 341))
        bounds = sorted(map(int, rng.choice(np.arange(20, n - 20), STEPS + 1, replace=False)))
        made.append(
            Example(
                features=rows(n, config.feature_dim),
                query=rows(config.text_dim),
                speech=rows(n, config.asr_dim),
                moment=(bounds[0], bounds[-1]),
                boundaries=bounds,
                steps=[*itertools.pairwise(bounds)],
                captions=rng.integers(1000, 30000, (STEPS, SAID)).tolist(),
            )
        )
    return made


def now_s() -> float:
    """Return the time until now, of the GPU or of the CPU."""
    if DEVICE == "cpu":
        return cpu_s()
    torch.cuda.synchronize()
    return time.perf_counter()


def trained(model: Joint, tables: Tables) -> float:
    """Return the seconds of updates as a fit makes them, after a first one."""
    marks = []
    with tempfile.TemporaryDirectory() as folder:
        training.train(
            model.state_dict(),
            torch.optim.AdamW(model.parameters(), fused=True),
            lambda batch: [tables.loss(model, batch)],
            mixed(tables.sizes, BATCH, "proportional", 0),
            Path(folder, "fit.safetensors"),
            epochs=1,
            updates=UPDATES + 1,
            rate=lambda _: 1e-5,
            every=UPDATES,
            resume="",
            what="updates",
            val_loss=lambda: 0.0,
            clip=5.0,
            after=lambda _: marks.append(now_s()),
        )
    return marks[-1] - marks[0]


def passes(model: Joint, tables: Tables) -> float:
    """Return the seconds of the forward and backward passes of the same batches, which are there already."""
    first = [0, *itertools.accumulate(tables.sizes)]
    given = []
    for batch in itertools.islice(mixed(tables.sizes, BATCH, "proportional", 0), UPDATES + 1):
        task = sum(int(batch[0]) >= end for end in first[1:])
        given.append((LOSSES[task], tables.given(task, batch - first[task])))
    marks = []
    for loss, parts in given:
        model.zero_grad()
        loss(model, *parts).backward()  # type: ignore[no-untyped-call]
        marks.append(now_s())
    return marks[-1] - marks[0]


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=DEVICE != "cpu")
    torch.manual_seed(0)
    config = JointConfig()
    model, tables = Joint(config).to(DEVICE).train(), Tables(examples(config), config, DEVICE)
    ways: dict[str, Callable[[Joint, Tables], float]] = {"passes alone": passes, "as a fit makes them": trained}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(REPEATS):
        for name, way in ways.items():
            times[name].append(way(model, tables) / UPDATES)
    alone_s = median(times["passes alone"])
    print(f"{'an update, of a batch of 5':40}{'s':>10}{'ratio':>10}{'h an epoch':>12}")
    for name, all_s in times.items():
        print(f"{name:40}{median(all_s):10.3f}{median(all_s) / alone_s:10.2f}{EPOCH * median(all_s) / 3600:12.2f}")
    model.eval()
    videos = tables.videos(torch.arange(BATCH))
    of_step, steps = tables.steps[: BATCH * STEPS, 0].to(DEVICE), tables.steps[: BATCH * STEPS, 1:].to(DEVICE)
    moments = tables.moments[:BATCH].to(DEVICE)
    for what, call, n in (
        ("a video's moment", lambda: model.moments(videos), BATCH),
        ("a video's segments", lambda: model.segments(videos, moments), BATCH),
        ("a step's caption of 48 words, 3 beams", lambda: model.captions(videos, of_step, steps), len(steps)),
    ):
        start_s = now_s()
        call()
        print(f"{what:40}{(now_s() - start_s) / n:10.3f}", flush=True)


if __name__ == "__main__":
    main()

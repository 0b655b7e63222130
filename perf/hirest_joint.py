"""Training of HiREST's joint model at the published size, compared with only the network's passes; decoding.

It prints seconds on a GPU if there is one, otherwise CPU seconds.
"""

import itertools
from functools import partial

import numpy as np
import torch
from measure import sized
from updates import DEVICE, fitted, now_s, passes, show

from stepline.models.hirest_joint import Joint
from stepline.models.hirest_joint_config import JointConfig
from stepline.models.hirest_joint_training import LOSSES, Example, Tables, mixed

VIDEOS, STEPS, SAID, BATCH = sized(24, small=5), 5, 6, 5
"""Videos of 240 to 340 s; steps per video; words per step; batch size. They match the published mix of tasks."""
EPOCH = 173 + 826 + 829
"""Published updates of an epoch."""
UPDATES, REPEATS = sized(16, small=3), sized(3, small=1)
NETWORK = sized({}, small={"embed": 16, "hidden": 24, "feedforward": 16, "layers": 1, "words": 8, "iterations": 2})


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


def trained(model: Joint, tables: Tables) -> float:
    """Return the seconds per update in a fit."""
    return fitted(
        model,
        torch.optim.AdamW(model.parameters(), fused=True),
        lambda batch: [tables.loss(model, batch)],
        mixed(tables.sizes, BATCH, "proportional", 0),
        UPDATES,
        val_loss=lambda: 0.0,
        clip=5.0,
    )


def alone(model: Joint, tables: Tables) -> float:
    """Return the seconds of only the passes, for the same batches."""
    first = [0, *itertools.accumulate(tables.sizes)]
    given = []
    for batch in itertools.islice(mixed(tables.sizes, BATCH, "proportional", 0), UPDATES + 1):
        task = sum(int(batch[0]) >= end for end in first[1:])
        given.append((LOSSES[task], tables.given(task, batch - first[task])))
    return passes(model, [lambda loss=loss, parts=parts: [loss(model, *parts)] for loss, parts in given])


def head() -> tuple[Joint, Tables]:
    """Return the network and its training data."""
    torch.manual_seed(0)
    config = JointConfig(**NETWORK)
    return Joint(config).to(DEVICE).train(), Tables(examples(config), config, DEVICE)


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=DEVICE != "cpu")
    model, tables = head()
    show(
        f"an update with a batch of {BATCH}",
        partial(alone, model, tables),
        partial(trained, model, tables),
        repeats=REPEATS,
        epoch=EPOCH,
    )
    model.eval()
    videos = tables.videos(torch.arange(BATCH))
    of_step, steps = tables.steps[: BATCH * STEPS, 0].to(DEVICE), tables.steps[: BATCH * STEPS, 1:].to(DEVICE)
    moments = tables.moments[:BATCH].to(DEVICE)
    for what, call, n in (
        ("a video's moment", lambda: model.moments(videos), BATCH),
        ("a video's segments", lambda: model.segments(videos, moments), BATCH),
        (
            f"a step's caption of {model.config.words} words, 3 beams",
            lambda: model.captions(videos, of_step, steps),
            len(steps),
        ),
    ):
        start_s = now_s()
        call()
        print(f"{what:40}{(now_s() - start_s) / n:10.3f}", flush=True)


if __name__ == "__main__":
    main()

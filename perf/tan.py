"""Training of MT+BCE at the published width, compared with only the network's passes; also inference, blobs, ordering.

It prints seconds on a GPU if there is one, otherwise CPU seconds. Rows are read from a memory-mapped float16
file, as in a bank. A batch has 128 videos of 200 to 600 s on a GPU, as TAN's; otherwise 8: a larger update has
proportionally more of the same work, and a smaller share of the optimiser.
"""

import itertools
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import torch
from measure import sized
from updates import DEVICE, fitted, now_s, passes, show

from stepline.models.blobs import blobs
from stepline.models.grounding import GroundedVideo
from stepline.models.ordering import ordered_times
from stepline.models.step_grounding import Sentences, StepGrounding, per_second
from stepline.models.step_grounding_config import StepGroundingConfig
from stepline.models.step_grounding_training import Batches

VIDEOS, BATCH = sized((256, 128) if DEVICE == "cuda" else (24, 8), small=(4, 2))
STEPS, ARTICLES = 11, 433
"""Videos, videos per batch, steps per article, and articles of the taxonomy."""
LISTED = 17472
"""Videos of the released training split."""
UPDATES, REPEATS = sized(4, small=1), sized(3, small=1)
LONGEST, MOST = sized(1200, small=60), 35
"""The longest video in seconds, and the steps of the largest activity."""
CONFIG = StepGroundingConfig(**sized({}, small={"width": 32, "joint_layers": 1}))


def videos(folder: Path) -> list[GroundedVideo]:
    """Return videos whose rows are views of one file, each with its own article and six segments."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(200, 601, VIDEOS)
    bank = np.lib.format.open_memmap(folder / "bank.npy", "w+", np.float16, (lengths.sum(), CONFIG.feature_dim))
    bank[:] = rng.standard_normal(bank.shape, dtype=np.float32)
    made = []
    for number, (n, end) in enumerate(zip(lengths.tolist(), lengths.cumsum().tolist(), strict=True)):
        starts, article = rng.integers(0, n - 15, 6), STEPS * number + np.arange(STEPS)
        segments = np.stack([starts, starts + 15], axis=1).astype(np.float64)
        made.append(
            GroundedVideo(
                rows=bank[end - n : end],
                duration_s=n,
                candidates=article,
                segments_s=segments,
                steps=rng.choice(article, 6),
            )
        )
    return made


def trained(model: StepGrounding, batches: Batches) -> float:
    """Return the seconds per update in a fit."""
    optimiser = torch.optim.AdamW(model.parameters(), fused=True)
    return fitted(model, optimiser, partial(batches.losses, model), batches.drawn(BATCH, 0), UPDATES)


def alone(model: StepGrounding, batches: Batches) -> float:
    """Return the seconds of only the passes, for the same batches."""
    drawn = itertools.islice(batches.drawn(BATCH, 0), UPDATES + 1)
    given = [[batches.given(part) for part in batches.parts(batch)] for batch in drawn]
    return passes(model, [lambda parts=parts: (model.loss(*part) for part in parts) for parts in given])


def step_sentences() -> list[np.ndarray]:
    """Return the vectors of each step's sentences."""
    shape = STEPS * ARTICLES, 1, CONFIG.text_dim
    return [*np.random.default_rng(1).standard_normal(shape, dtype=np.float32)]


def head(folder: Path, sentences: list[np.ndarray]) -> tuple[StepGrounding, Batches]:
    """Return the network and its training data, whose rows are below ``folder``."""
    torch.manual_seed(0)
    batches = Batches(videos(folder), Sentences(sentences, DEVICE), CONFIG.positions)
    return StepGrounding(CONFIG).to(DEVICE).train(), batches


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=DEVICE != "cpu")
    rng, sentences = np.random.default_rng(2), step_sentences()
    with tempfile.TemporaryDirectory() as folder:
        model, batches = head(Path(folder), sentences)
        show(
            f"an update with a batch of {BATCH}",
            partial(alone, model, batches),
            partial(trained, model, batches),
            repeats=REPEATS,
            epoch=LISTED // BATCH,
        )
    model.eval()
    rows = rng.standard_normal((LONGEST, CONFIG.feature_dim), dtype=np.float32)
    nothing = np.zeros((0, 2)), np.zeros(0, np.int64)
    longest = GroundedVideo(
        rows=rows, duration_s=LONGEST, candidates=np.arange(MOST), segments_s=nothing[0], steps=nothing[1]
    )
    noise = rng.random((LONGEST, MOST))
    print(f"a video of {LONGEST} s, an article of {MOST} steps")
    calls: dict[str, Callable[[], object]] = {
        "confidences": lambda: per_second(model, longest, sentences),
        "blobs, of noise": lambda: blobs(noise),
        "blobs, of the confidences of no fit": lambda: blobs(confidences),
        "ordered times": lambda: ordered_times(noise),
    }
    confidences = per_second(model, longest, sentences)
    for what, call in calls.items():
        spent = []
        for _ in range(REPEATS):
            start_s = now_s()
            call()
            spent.append(now_s() - start_s)
        print(f"{what:40}{median(spent):10.3f}", flush=True)


if __name__ == "__main__":
    main()

"""Training of ActionFormer and ActionFormer-T at the published size, compared with only the networks' passes; decoding.

1024-d rows, 512 per video, 4958 steps. On a GPU it prints seconds for batches of 16, as published; otherwise CPU
seconds for batches of 2, in which the share of other work is larger, since the optimiser's cost does not depend on the
batch.
"""

import itertools
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import torch
from measure import sized
from updates import DEVICE, fitted, now_s, passes, show

from stepline.models.actionformer import ActionFormer
from stepline.models.actionformer_config import ActionFormerConfig, Decoding
from stepline.models.actionformer_grounding import ground, per_second
from stepline.models.actionformer_training import Samples, decayed
from stepline.models.grounding import GroundedVideo
from stepline.models.training import blend, shuffled

STEPS, CANDIDATES, DIMENSION = sized(4958, small=20), 12, sized(1024, small=8)
VIDEOS, BATCH, UPDATES = sized((48, 16, 20) if DEVICE == "cuda" else (12, 2, 4), small=(2, 2, 1))
REPEATS = sized(3, small=1)
NETWORK = sized({}, small={"embed": 8, "pyramid_dim": 8, "head_dim": 8, "text_embed": 8})


def videos(folder: Path) -> list[GroundedVideo]:
    """Return videos of 300 to 900 s with random rows on disk and six segments each."""
    rng = np.random.default_rng(0)
    made = []
    for number in range(VIDEOS):
        n = int(rng.integers(300, 901))
        np.save(folder / f"{number}.npy", rng.standard_normal((n, DIMENSION), dtype=np.float32).astype(np.float16))
        candidates = np.sort(rng.choice(STEPS, CANDIDATES, replace=False))
        start_s = rng.uniform(0, n - 60, 6)
        made.append(
            GroundedVideo(
                rows=np.load(folder / f"{number}.npy", mmap_mode="r"),
                duration_s=float(n),
                candidates=candidates,
                segments_s=np.stack((start_s, start_s + rng.uniform(3, 40, 6)), axis=1),
                steps=rng.choice(candidates, 6),
            )
        )
    return made


def trained(model: ActionFormer, samples: Samples) -> float:
    """Return the seconds per update in a fit."""
    kept, normaliser = ActionFormer(model.config).to(DEVICE), torch.tensor(model.config.init_norm, dtype=torch.float64)
    return fitted(
        kept,
        torch.optim.AdamW(decayed(model, 0.05), fused=True),
        lambda numbers: [samples.loss(model, samples.batch(numbers), normaliser)],
        shuffled(VIDEOS, BATCH, 0, full=True),
        UPDATES,
        clip=1.0,
        after=lambda: blend(kept, model, 0.999),
    )


def alone(model: ActionFormer, samples: Samples) -> float:
    """Return the seconds of the passes for the same number of batches."""
    numbers = itertools.islice(shuffled(VIDEOS, BATCH, 0, full=True), UPDATES + 1)
    batches, normaliser = [samples.batch(each) for each in numbers], torch.tensor(model.config.init_norm)
    return passes(model, [lambda each=each: [samples.loss(model, each, normaliser)] for each in batches])


def heads(some: list[GroundedVideo], texts: np.ndarray) -> Iterator[tuple[str, ActionFormer, Samples]]:
    """Yield the name, the network and the training samples of each variant."""
    for name, own in (
        ("ActionFormer", {"classes": STEPS}),
        ("ActionFormer-T", {"text_dim": texts.shape[1]}),
        ("ActionFormer-T, only articles", {"text_dim": texts.shape[1], "candidates": "article"}),
    ):
        torch.manual_seed(0)
        config = ActionFormerConfig(feature_dim=DIMENSION, **own, **NETWORK)
        vectors = texts if "text_dim" in own else None
        yield name, ActionFormer(config).to(DEVICE).train(), Samples(config, some, vectors, DEVICE)


def step_vectors() -> np.ndarray:
    """Return the vectors of the steps."""
    return np.random.default_rng(1).standard_normal((STEPS, 768), dtype=np.float32)


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=DEVICE != "cpu")
    texts = step_vectors()
    with tempfile.TemporaryDirectory() as folder:
        some = videos(Path(folder))
        for name, model, samples in heads(some, texts):
            vectors = texts if model.config.text_dim else None
            show(
                f"{name}, an update with a batch of {BATCH}",
                partial(alone, model, samples),
                partial(trained, model, samples),
                repeats=REPEATS,
            )
            model.eval()
            for what in ("segments", "seconds"):
                start_s = now_s()
                for each in some[:3]:
                    if what == "segments":
                        ground(model, each, vectors, settings=Decoding())
                    else:
                        per_second(model, each, vectors)
                print(f"{f'{name}, {what} of a video':52}{(now_s() - start_s) / 3:10.3f}", flush=True)


if __name__ == "__main__":
    main()

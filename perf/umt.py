"""Training of UMT at HT-Step's size, compared with only the network's passes; padding; grounding.

Videos of 60 to 700 s, 380 on average, with 1024 float16 numbers per second in a memory-mapped file; steps of 3 to 14
words with 512 numbers. It prints seconds for batches of 64 on a GPU if there is one, otherwise CPU seconds for batches
of 8.
"""

import tempfile
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from measure import sized
from updates import DEVICE, fitted, now_s, passes, show

from stepline.models.grounding import GroundedVideo
from stepline.models.training import shuffled
from stepline.models.umt import Queries, Umt
from stepline.models.umt_config import UmtConfig
from stepline.models.umt_grounding import ground
from stepline.models.umt_moments import Targets
from stepline.models.umt_training import Samples, bucketed

BATCH = sized(64 if DEVICE == "cuda" else 8, small=4)
VIDEOS, STEPS, CANDIDATES = sized(200, small=5), 5, 11
"""The number of videos; the shown steps and the article's steps of each."""
SAMPLES = sized(87_000, small=870)
"""About the size of HT-Step: 17.4 thousand training videos with about five steps each."""
UPDATES, REPEATS = sized((30, 3) if DEVICE == "cuda" else (3, 3), small=(1, 1))
SIZES = sized((1024, 512, 256), small=(16, 16, 16))
CONFIG = UmtConfig(feature_dim=SIZES[0], text_dim=SIZES[1], hidden=SIZES[2])


def videos(folder: Path) -> list[GroundedVideo]:
    """Return videos of random rows in a file."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.gamma(6, 380 / 6, VIDEOS), 60, 700).astype(int)
    ends = lengths.cumsum()
    bank = np.lib.format.open_memmap(folder / "bank.npy", "w+", np.float16, (int(ends[-1]), CONFIG.feature_dim))
    made = []
    for length, end in zip(lengths.tolist(), ends.tolist(), strict=True):
        bank[end - length : end] = rng.standard_normal((length, CONFIG.feature_dim), dtype=np.float32)
        start_s = rng.uniform(0, length - 20, STEPS)
        made.append(
            GroundedVideo(
                rows=bank[end - length : end],
                duration_s=float(length),
                candidates=rng.permutation(CANDIDATES),
                segments_s=np.stack([start_s, start_s + rng.uniform(5, 20, STEPS)], axis=1),
                steps=np.arange(STEPS),
            )
        )
    return made


def trained(model: Umt, samples: Samples) -> float:
    """Return the seconds per update in a fit."""
    return fitted(
        model,
        torch.optim.Adam(model.parameters(), weight_decay=1e-4, fused=True),
        lambda batch: [samples.loss(model, batch)],
        bucketed(samples.lengths, BATCH, 0),
        UPDATES,
    )


def alone(model: Umt, samples: Samples) -> float:
    """Return the seconds of only the passes, for the same batches."""
    batches = [*map(samples.batch, islice(bucketed(samples.lengths, BATCH, 0), UPDATES + 1))]
    return passes(model, [partial(_losses, model, *each) for each in batches])


def _losses(model: Umt, queries: Queries, saliency: torch.Tensor, learned: Targets) -> list[torch.Tensor]:
    return [torch.stack([*model.losses(model(queries), queries.there, saliency, learned).values()]).sum()]


def padding(lengths: torch.Tensor, batches: list[torch.Tensor]) -> float:
    """Return the fraction of padding in the batches' rows."""
    rows = sum(len(each) * int(lengths[each].max()) for each in batches)
    return 1 - int(lengths[torch.cat(batches)].sum()) / rows


def step_words() -> list[np.ndarray]:
    """Return the vectors of each step's words."""
    rng = np.random.default_rng(1)
    return [rng.standard_normal((int(rng.integers(3, 15)), CONFIG.text_dim), np.float32) for _ in range(CANDIDATES)]


def head(made: list[GroundedVideo], words: list[np.ndarray]) -> tuple[Umt, Samples]:
    """Return the network and its training data."""
    torch.manual_seed(0)
    return Umt(CONFIG).to(DEVICE).train(), Samples(made, words, CONFIG, DEVICE)


def main() -> None:
    """Print the table."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True, warn_only=DEVICE != "cpu")
    rng, words = np.random.default_rng(2), step_words()
    with tempfile.TemporaryDirectory() as folder:
        made = videos(Path(folder))
        model, samples = head(made, words)
        show(
            f"an update with a batch of {BATCH}",
            partial(alone, model, samples),
            partial(trained, model, samples),
            repeats=REPEATS,
            epoch=SAMPLES // BATCH,
        )
        start_s = now_s()
        for each in made[:5]:
            ground(model.eval(), each, words)
        print(f"{f'{CANDIDATES} steps of a video are grounded':40}{(now_s() - start_s) / 5:10.3f}")
    lengths = torch.from_numpy(np.clip(rng.gamma(6, 380 / 6, SAMPLES // STEPS), 60, 700)).long().repeat(STEPS)
    n = -(-SAMPLES // 64)
    for name, drawn in (
        ("by length", bucketed(lengths, 64, 0)),
        ("as they come", shuffled(len(lengths), 64, 0)),
    ):
        print(f"{f'padding of batches of 64, {name}':40}{100 * padding(lengths, [*islice(drawn, n)]):9.1f}%")


if __name__ == "__main__":
    main()

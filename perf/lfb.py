"""Long-term feature banks at full size: pooling compared with reading the bank, memory, and an epoch of each head.

18 recordings of 30,000 s with 2304 numbers per second are created in a temporary folder (2.5 GB) and removed. By
default TF is omitted: on a CPU its epoch takes hours. ``--device cuda`` measures NL and TF there.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
from measure import cpu_s, show, sized
from torch.optim.optimizer import register_optimizer_step_post_hook
from updates import now_s

from stepline.models.context import Block, Segments, average, concatenation
from stepline.models.lfb import PART, Clips, Head, fit_lfb
from stepline.models.linear import Matching, fit_linear

RECORDINGS, TRAIN, SECONDS, SAMPLES, STEPS, WINDOW_S = sized(
    (18, 10, 30_000, 2_000, 25, 1200.0), small=(4, 2, 1_500, 20, 5, 60.0)
)
VIDEO, TEXT, TEXTS = sized((768, 768, 5_000), small=(32, 16, 50))
BATCH, UPDATES = sized(512, small=8), sized(5, small=2)
DIMENSION = VIDEO + 2 * TEXT
rng = np.random.default_rng(0)
TIMES_S = np.sort(rng.uniform(600, SECONDS - 600, SAMPLES))


def banks_on_disk(folder: Path) -> list[np.ndarray]:
    """Return (T, D) float16 arrays, mapped from files."""
    arrays = []
    for number in range(RECORDINGS):
        rows = np.lib.format.open_memmap(folder / f"{number}.npy", "w+", np.float16, (SECONDS, DIMENSION))
        for part in np.split(rows, SECONDS // 1500):
            part[:] = rng.standard_normal(part.shape, np.float32)
        del rows
        arrays.append(np.load(folder / f"{number}.npy", mmap_mode="r"))
    return arrays


def read(arrays: list[np.ndarray]) -> None:
    """Sum all numbers of all banks, block by block."""
    for rows in arrays:
        for first in range(0, SECONDS, 1200):
            rows[first : first + 1200].astype(np.float64).sum(axis=0)


def matching(arrays: list[np.ndarray], pool: object) -> Matching:
    """Return the inputs of the linear head: 2,000 windows of 20 min of each recording."""
    parts = [pool(rows, TIMES_S, WINDOW_S) for rows in arrays]  # type: ignore[operator]
    dimension = parts[0].shape[1]
    features = np.empty((len(parts) * SAMPLES, dimension), np.float32)
    for number, part in enumerate(parts):
        features[number * SAMPLES : (number + 1) * SAMPLES] = part
    return Matching(features=features, **truth(len(parts)))


def truth(recordings: int) -> dict[str, object]:
    """Return steps and random labels."""
    steps = [rng.standard_normal((STEPS, DIMENSION), np.float32) / 48 for _ in range(recordings)]
    labels = rng.integers(1, STEPS + 1, recordings * SAMPLES)
    return {"owner": np.repeat(np.arange(recordings), SAMPLES), "label": labels, "steps": steps}


def clips(recordings: int, samples: int) -> Clips:
    """Return the inputs of the attention heads: the first ``samples`` windows of each recording."""
    banks = []
    for _ in range(recordings):
        texts = Block(rng.standard_normal((TEXTS, TEXT), np.float32), rng.integers(0, TEXTS, SECONDS))
        seen = rng.standard_normal((SECONDS, VIDEO), np.float32).astype(np.float16)
        banks.append(Segments((Block(seen), texts, texts), normalise=True))
    content = truth(recordings)
    kept = np.tile(np.arange(SAMPLES) < samples, recordings)
    whose = {key: content[key][kept] for key in ("owner", "label")}  # type: ignore[index]
    return Clips(banks=banks, times_s=np.tile(TIMES_S[:samples], recordings), **content | whose)  # type: ignore[arg-type]


def epoch(title: str, fit: object, **options: object) -> None:
    """Print the seconds and CPU seconds of one epoch, including validation, and the peak memory so far."""
    with tempfile.TemporaryDirectory() as folder:
        start, started_s = time.monotonic(), cpu_s()
        fit(path=Path(folder, "fit"), epochs=1, seed=0, **options)  # type: ignore[operator]
        took, used_s = time.monotonic() - start, cpu_s() - started_s
    print(f"{title}: an epoch {took:.0f} s, {used_s:.0f} s of CPU, peak {peak_gib():.1f} GiB", flush=True)


def update_s(head: Head, device: str) -> float:
    """Return the mean seconds of an update in a fit, without the first one."""
    marks: list[float] = []
    hook = register_optimizer_step_post_hook(lambda *_: marks.append(now_s()))
    train, val = clips(UPDATES, BATCH), clips(1, 8)
    options = {"context_s": WINDOW_S, "batch_size": BATCH, "learning_rate": 1e-4, "seed": 0, "device": device}
    with tempfile.TemporaryDirectory() as folder:
        fit_lfb(head, train, val, Path(folder, "fit"), epochs=1, **options)
    hook.remove()
    return (marks[-1] - marks[0]) / (UPDATES - 1)


def peak_gib() -> float:
    """Return the peak memory of this process so far, including pages of mapped files, in GiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--samples", type=int, default=SAMPLES, help="windows per recording for NL and TF")
    parser.add_argument("--heads", default="avg,cat,nl", help="comma-separated: avg, cat, nl, tf")
    args = parser.parse_args()
    heads = args.heads.split(",")
    with tempfile.TemporaryDirectory() as folder:
        arrays = banks_on_disk(Path(folder)) if {"avg", "cat"} & {*heads} else []
        for name, pool in (("avg", average), ("cat", concatenation)):
            if name not in heads:
                continue
            calls = {"a read": lambda: read(arrays), name: lambda pool=pool: matching(arrays, pool)}
            show(f"{RECORDINGS} banks, windows of 20 min, pooled", "a read", calls, repeats=1)
            train, val = matching(arrays[:TRAIN], pool), matching(arrays[TRAIN : TRAIN + 2], pool)
            epoch(f"LFB {name}", fit_linear, train=train, val=val, batch_size=2048, learning_rate=1e-2)
            del train, val
    head: Head
    for head, rate in (("nl", 1e-3), ("tf", 1e-4)):
        if head in heads:
            data = {"train": clips(TRAIN, args.samples), "val": clips(2, args.samples)}
            options = {"context_s": WINDOW_S, "batch_size": BATCH, "learning_rate": rate, "device": args.device}
            title = f"LFB {head}, {args.samples} windows of each recording, {PART} at once, {args.device}"
            epoch(title, fit_lfb, head=head, **data, **options)


if __name__ == "__main__":
    main()

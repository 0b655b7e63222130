"""Updates of the planners from windows in memory, compared with a loader that reads a video's file for each window."""

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from measure import show, sized
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Subset
from updates import DEVICE, now_s

from stepline.benchmark import Job
from stepline.benchmarks.oepp.benchmark import Oepp
from stepline.benchmarks.oepp.inputs import OeppInputs
from stepline.benchmarks.oepp.methods.observations import Observations
from stepline.benchmarks.oepp.methods.trained import Samples
from stepline.benchmarks.oepp.windows import Window, windows
from stepline.config import validate
from stepline.datasets.oepp import EventVideo, Step
from stepline.features.importing import Folder, import_folder
from stepline.models.diffusion import PlanDiffusion
from stepline.models.plan_loss import balanced_loss, plan_loss
from stepline.models.planners import MlpPlanner, TransformerPlanner

VIDEOS, SECONDS, STEPS, ACTIONS, HORIZON = 64, 128, 10, 122, 3
"""A video has OpenEvent's average length."""
DIMENSION, BATCH = sized(768, small=64), sized(256, small=32)
UPDATES = sized(100, small=2)

Batch = tuple[Tensor, Tensor]
Update = Callable[[Batch], object]


class Files(Dataset[Batch]):
    """The usual loading of windows: the video's file is read for each window, and rows are copied one by one."""

    def __init__(self, folder: Path, cut: list[Window], pool: list[str]) -> None:
        self.folder, self.cut, self.pool = folder, cut, pool

    def __len__(self) -> int:
        return len(self.cut)

    def __getitem__(self, place: int) -> Batch:
        window = self.cut[place]
        rows = np.load(self.folder / f"{window.video}.npy")
        start, end = int(window.start.start_s), min(int(window.end.end_s), len(rows) - 1)
        places, nothing = (*range(start, start + 3), *range(end - 2, end + 1)), np.zeros(DIMENSION, dtype=np.float32)
        seen = [rows[row] if 0 <= row < len(rows) else nothing for row in places]
        labels = [self.pool.index(action) for action in window.actions]
        return torch.from_numpy(np.concatenate(seen)), torch.tensor(labels)


def made(folder: Path) -> tuple[Files, Samples]:
    """Return the same windows from both loaders, with features that are written below ``folder``."""
    random, pool = np.random.default_rng(0), [f"action {number}" for number in range(ACTIONS)]
    videos = []
    for number in range(VIDEOS):
        np.save(folder / f"COIN_{number}.npy", random.normal(size=(SECONDS, DIMENSION)).astype(np.float32))
        edges = np.sort(random.choice(SECONDS, 2 * STEPS, replace=False)).reshape(STEPS, 2).tolist()
        steps = tuple(Step(action=str(random.choice(pool)), start_s=start, end_s=end) for start, end in edges)
        named = {"id": f"COIN_{number}", "vid": str(number), "source": "COIN", "source_event": "0"}
        videos.append(EventVideo(**named, event="Event", domain="", steps=steps))
    import_folder(Folder(folder), "planted", "openevent", 1.0)
    plan = Oepp.of(validate({"oepp": {"features": {"videoclip": {"video": "planted"}}}}), "oepp")
    cut = windows(videos, HORIZON, "repeat_first")
    observed = Observations.of(OeppInputs(plan, Job(release="split1", entry=plan.entries["mlp-t3"])), cut)
    text = torch.from_numpy(random.normal(size=(ACTIONS, DIMENSION)).astype(np.float32))
    labels = torch.tensor([[pool.index(action) for action in window.actions] for window in cut])
    rows, index = torch.from_numpy(observed.rows), torch.from_numpy(observed.index)
    return Files(folder, cut, pool), Samples(rows, index, text, labels)


def planners(text: Tensor) -> Iterator[tuple[str, int, Update]]:
    """Yield each planner's name, windows of an update, and an update of it, at the published sizes."""
    sizes = DIMENSION, DIMENSION, HORIZON
    for name, made in (("MLP", MlpPlanner(*sizes)), ("Transformer", TransformerPlanner(*sizes))):
        head = made.to(text.device)
        adam = torch.optim.Adam(head.parameters(), lr=1e-4, weight_decay=1e-5, fused=True)
        yield name, BATCH, update(lambda x, y, head=head: plan_loss(head(x), text, y, loss="both"), adam)
    diffusion = PlanDiffusion(*sizes).to(text.device)
    adam = torch.optim.Adam(diffusion.parameters(), lr=5e-4, fused=True)
    yield "PDPP*", 32, update(lambda x, y: balanced_loss(diffusion(x), text, y), adam)


def update(loss: Callable[[Tensor, Tensor], Tensor], optimiser: torch.optim.Optimizer) -> Update:
    """Return a function that computes an update from a batch."""

    def learn(batch: Batch) -> None:
        optimiser.zero_grad()
        loss(*batch).backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return learn


def on_gpu(samples: Samples) -> None:
    """Print the seconds of updates of each planner on a GPU, after a warm-up."""
    for name, size, seconds in on_device(samples):
        print(
            f"{name}: {UPDATES} updates of {size} windows on {torch.cuda.get_device_name()}: {UPDATES * seconds:.2f} s"
        )


def on_device(samples: Samples) -> Iterator[tuple[str, int, float]]:
    """Yield each planner's name, windows of an update, and mean seconds of an update after a warm-up."""
    text = samples.text.to(DEVICE)
    for name, size, learn in planners(text):
        batch = samples.observations(slice(size)).to(DEVICE), samples.labels[:size].to(DEVICE)
        learn(batch)
        start_s = now_s()
        for _ in range(UPDATES):
            learn(batch)
        yield name, size, (now_s() - start_s) / UPDATES


def main() -> None:
    """Print the tables."""
    torch.set_num_threads(1)
    with TemporaryDirectory() as temporary:
        os.chdir(temporary)
        folder = Path("files")
        folder.mkdir()
        files, samples = made(folder)
        for name, size, learn in planners(samples.text):
            n = max(BATCH, 2 * size)

            def read(size: int = size, n: int = n) -> Iterable[Batch]:
                return DataLoader(Subset(files, range(n)), size)

            def held(size: int = size, n: int = n) -> Iterable[Batch]:
                return ((samples.observations(at), samples.labels[at]) for at in torch.arange(n).split(size))

            def one(size: int = size, n: int = n) -> Iterable[Batch]:
                return repeat((samples.observations(slice(size)), samples.labels[:size]), n // size)

            for ours, theirs in zip(held(), read(), strict=True):
                torch.testing.assert_close(ours, theirs, rtol=0, atol=0)

            def learnt(batches: Callable[[], Iterable[Batch]], learn: Update = learn) -> Callable[[], None]:
                return lambda: [learn(batch) for batch in batches()].clear()

            calls = {
                "a file read for each window": learnt(read),
                "windows in memory": learnt(held),
                "the updates alone, of one batch": learnt(one),
                "a file read for each window, no updates": lambda read=read: [*read()].clear(),
                "windows in memory, no updates": lambda held=held: [*held()].clear(),
            }
            show(f"{name}: {n} windows, {n // size} updates of {size}", "a file read for each window", calls, repeats=3)
        if torch.cuda.is_available():
            on_gpu(samples)


if __name__ == "__main__":
    main()

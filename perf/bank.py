"""Random reads of features, as arrays and tensors, compared with np.memmap on .npy and on one flat file."""

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from measure import show, sized

import stepline
from stepline import paths
from stepline.config import validate
from stepline.datasets.schema import Video
from stepline.datasets.shards import assign
from stepline.features import store
from stepline.features.bank import Bank
from stepline.io import write_json
from stepline.spec import FrameSpec

ROWS = sized(30_000, small=3000)
READS = sized(2000, small=20)
SHORT = sized(20_000, small=500)


@dataclass(frozen=True, kw_only=True)
class Synthetic(FrameSpec):
    """The stored data: random numbers."""

    dtype: str = "float16"


SPEC = Synthetic(name="perf", label="bank", revision=1, fps=1)


def rows(n: int, d: int) -> np.ndarray:
    """Return (n, d) random float16 numbers."""
    return np.random.default_rng(n).standard_normal((n, d), np.float32).astype(np.float16)


def windows(folder: Path) -> None:
    """Compare random windows of 60 to 1,200 s of one long video."""
    whole = rows(ROWS, 1024)
    np.save(folder / "long.npy", whole)
    store.write(folder / "000", SPEC, {"long": whole}, 1)
    rng = np.random.default_rng(0)
    lengths = rng.integers(60, 1200, READS)
    starts = (rng.random(READS) * (len(whole) - lengths)).astype(int)
    asked = list(zip(starts.tolist(), (starts + lengths).tolist(), strict=True))

    mapped = np.load(folder / "long.npy", mmap_mode="r")
    opened = Bank.open([folder / "000"], SPEC)

    def flat() -> list[float]:
        return [float(np.array(mapped[first:last])[0, 0]) for first, last in asked]

    def bank() -> list[float]:
        return [float(np.array(opened.window("long", first, last))[0, 0]) for first, last in asked]

    assert flat() == bank()
    title = f"{READS} random windows of 60 to 1,200 rows of {ROWS:,} x 1024 float16, copied"
    show(title, "np.memmap on .npy", {"np.memmap on .npy": flat, "Bank.window": bank})


def items(folder: Path) -> None:
    """Compare items of the torch dataset of all windows of 64 rows of that video."""
    bank = Bank.open([folder / "000"], SPEC)
    dataset = bank.torch(*bank.sliding(64, 1, whole=True), length=64)
    order = np.random.default_rng(1).permutation(len(dataset)).tolist()
    mapped = np.load(folder / "long.npy", mmap_mode="r")

    def flat() -> list[float]:
        return [float(torch.from_numpy(np.array(mapped[i : i + 64]))[0, 0]) for i in order]

    def dataset_items() -> list[float]:
        return [float(dataset[i][0][0, 0]) for i in order]

    assert flat() == dataset_items()
    title = f"{len(order)} windows of 64 rows of {ROWS:,} x 1024 float16, copied to tensors"
    show(title, "np.memmap on .npy", {"np.memmap on .npy": flat, "Bank.torch": dataset_items})


def short_videos(folder: Path) -> None:
    """Count files, and compare reads of whole short videos in the workflow's default shards."""
    hours = validate({})["shard_hours"]
    part = rows(300, 64)
    videos = [Video(id=f"v{i:05d}", split="", duration_s=300, url="") for i in range(SHORT)]
    shards = assign(videos, hours=hours, known={})
    write_json(folder / paths.spec_record(SPEC), SPEC.record())
    for shard in sorted(set(shards.values())):
        held = {video: part + np.float16(int(video[1:]) % 8) for video in shards if shards[video] == shard}
        store.write(folder / paths.features("short", shard, SPEC), SPEC, held, 1)
        write_json(folder / paths.features_manifest("short", shard, SPEC), {})
    written = sum(path.is_file() for path in (folder / "features").rglob("*"))
    with open(folder / "flat", "wb") as file:
        file.writelines((part + np.float16(int(video.id[1:]) % 8)).data for video in videos)
    print(f"{SHORT} videos of 300 s in shards of {hours} h: {written} files, {written / SHORT:.4f} per video\n")
    asked = np.random.default_rng(0).integers(0, SHORT, 10 * READS).tolist()
    mapped = np.memmap(folder / "flat", np.float16, mode="r", shape=(SHORT * len(part), part.shape[1]))
    opened = stepline.open_bank(SPEC.name, "short", root=folder)

    def flat() -> list[float]:
        return [float(np.array(mapped[300 * i : 300 * (i + 1)])[0, 0]) for i in asked]

    def bank() -> list[float]:
        return [float(np.array(opened[f"v{i:05d}"])[0, 0]) for i in asked]

    assert flat() == bank()
    title = f"{10 * READS} random videos of {SHORT}, 300 x 64 float16, copied"
    show(title, "one flat np.memmap", {"one flat np.memmap": flat, "bank[video]": bank})
    calls = {"opened": lambda: stepline.open_bank(SPEC.name, "short", root=folder)}
    show(f"the bank of {SHORT} videos opened", "opened", calls)


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        windows(Path(folder))
        items(Path(folder))
        short_videos(Path(folder))


if __name__ == "__main__":
    main()

"""Rows of all presets on a GPU compared with rows on a CPU, by the type of the arithmetic; random weights."""

from collections import defaultdict
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from random_weights import SIDE, load, network_of, random_presets
from updates import DEVICE

from stepline.errors import StoreError
from stepline.features.network import Network
from stepline.spec import ClipSpec

COMPUTE = "float32", "bfloat16", "float16"
MOST = 60
"""The frames of a clip up to which a CPU computes the reference; more would take it minutes."""
BLOCKS = 4
"""The coloured squares of a picture along each side."""


def pictures(spec: ClipSpec, n: int) -> NDArray[np.uint8]:
    """Return (n, T, H, W, 3) clips of coloured squares."""
    draw = np.random.default_rng(0).integers(256, size=(n, spec.num_frames, BLOCKS, BLOCKS, 3), dtype=np.uint8)
    side = SIDE // BLOCKS
    return draw.repeat(side, axis=2).repeat(side, axis=3)


def rows(spec: ClipSpec, clips: NDArray[np.uint8], device: str) -> NDArray[np.float32]:
    """Return the rows of clips on a device."""
    return Network(spec, load(spec, {}), device, None)(clips, np.ones(clips.shape[:2], bool))


def apart(some: NDArray[np.float32], others: NDArray[np.float32]) -> float:
    """Return the largest L2 difference of corresponding rows, relative to those of ``others``."""
    return float((np.linalg.norm(some - others, axis=1) / np.linalg.norm(others, axis=1)).max())


def line(spec: ClipSpec) -> str:
    """Return the differences by type, whether a second pass gives equal bytes, and the GPU's memory."""
    spec = replace(spec, dtype="float32")
    clips = pictures(spec, 2 if spec.num_frames <= 30 else 1)
    expected = rows(spec, clips, "cpu" if spec.num_frames <= MOST else DEVICE)
    if DEVICE == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
    found, equal = "", True
    for compute in COMPUTE:
        typed = replace(spec, compute=compute)
        try:
            first, second = (rows(typed, clips, DEVICE) for _ in range(2))
        except StoreError as error:
            found += f"{'error':>10}"
            print(error, flush=True)
            continue
        found += f"{apart(first, expected):10.1e}"
        equal &= first.tobytes() == second.tobytes()
    gib = (torch.cuda.max_memory_allocated() - before) / 2**30 if DEVICE == "cuda" else 0.0
    others = apart(expected[:1], expected[1:]) if len(clips) > 1 else float("nan")
    return f"{found}{others:14.1e}{'yes' if equal else 'NO':>8}{gib:8.1f}"


def main() -> None:
    """Print the table: the networks with few frames per clip first. Presets with the same network share a line."""
    print(f"rows on {DEVICE} compared with rows on the CPU in float32; the largest relative difference of a row")
    print(f"clips of more than {MOST} frames: compared with rows on {DEVICE} in float32")
    same: dict[tuple[object, ...], list[ClipSpec]] = defaultdict(list)
    for spec in random_presets().values():
        same[*network_of(spec), spec.num_frames, spec.mean].append(spec)
    print(f"{'':32}{'':>4}{''.join(f'{each:>10}' for each in COMPUTE)}{'another clip':>14}{'equal':>8}{'GiB':>8}")
    for specs in sorted(same.values(), key=lambda each: each[0].num_frames):
        also = f"+{len(specs) - 1}" if len(specs) > 1 else ""
        print(f"{specs[0].name:32}{also:>4}{line(specs[0])}", flush=True)


if __name__ == "__main__":
    main()

"""The differences between each preset and its ``-as-released`` variant, on real clips: a Markdown table.

Times: the mean delay of the released variant's frames over all rows. Pictures and vectors are from the first rows of
each clip, and pictures only from places where both show one; vectors are from networks that are filled by the recipe of
``--parity``.
"""

import argparse
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from measure import sized
from numpy.typing import NDArray

from stepline.backbones.picture import picture
from stepline.backbones.registry import FAMILIES, presets
from stepline.features.clips import OUTSIDE, rows
from stepline.media.read import pyav
from stepline.media.timeline import Timeline, scan
from stepline.spec import ClipSpec
from tests.parity import weights

ROWS = sized(2, small=1)
RECIPES = (
    ("s3d", "s3d_howto100m.pth", "", ""),
    ("timesformer", "TimeSformer_divST_8x32_224_HowTo100M_pretrained.pth", "full", ""),
    ("videoclip", "checkpoint_best.pt", "full", "mmmodel."),
)
"""Architecture, checkpoint, configuration in the manifest, and prefix of the names in the checkpoint."""
LISTED = sized([(0.0, 5.0), (2.0, 10.0)], small=[(0.0, 0.5), (0.2, 0.9)])
"""The clips for presets that use listed clips."""
SUFFIX = "-as-released"


@dataclass(frozen=True)
class Seen:
    """The input of a network for a clip. t_s: (N, T), NaN for zero padding; clips: (ROWS, T, H, W, 3), [0, 255]."""

    t_s: NDArray[np.float64]
    clips: NDArray[np.float32]
    shown: NDArray[np.bool_]


def seen(path: Path, timeline: Timeline, spec: ClipSpec) -> Seen:
    """Return the times of all rows, and the frames of the first rows."""
    frames = rows(spec, timeline, listed=LISTED).frames
    first = frames[:ROWS]
    wanted = np.unique(first[first != OUTSIDE])
    made = {}
    for index, frame in zip(wanted.tolist(), pyav(path, timeline, wanted), strict=True):
        made[index] = picture(frame, spec.steps).astype(np.float32)
    zeros = np.zeros_like(next(iter(made.values())))
    clips = np.stack([np.stack([made.get(index, zeros) for index in row]) for row in first.tolist()])
    return Seen(np.where(frames == OUTSIDE, np.nan, timeline.t_s[frames]), clips, first != OUTSIDE)


def filled(parity: Path, folder: Path) -> dict[str, dict[str, Path]]:
    """Write checkpoints with weights from the recipe, and return the files of each architecture with a recipe."""
    files: dict[str, dict[str, Path]] = {}
    for name, file, config, prefix in sized(RECIPES, small=RECIPES[:1]):
        manifest = json.loads((parity / name / "manifest.json").read_text(encoding="utf-8"))
        described = manifest["configs"][config] if config else manifest
        arrays = weights(described["keys"], described["digest_sha256"])
        tensors = {prefix + key: torch.from_numpy(np.asarray(array)) for key, array in arrays.items()}
        torch.save({"model": tensors} if prefix else tensors, folder / file)
        files[name] = {file: folder / file, **files.get("s3d", {})}
    return files


def vectors(spec: ClipSpec, files: Mapping[str, Path], clips: list[Seen]) -> NDArray[np.float32]:
    """Return the vectors of the first rows of all clips."""
    network = import_module(FAMILIES[spec.architecture]).load(spec, files)
    mean, std = (torch.tensor(each).view(3, 1, 1, 1) for each in (spec.mean, spec.std))
    made = []
    with torch.inference_mode():
        for each in clips:
            for clip, shown in zip(each.clips, each.shown, strict=True):
                inputs = (torch.from_numpy(clip).permute(3, 0, 1, 2) / 255 - mean) / std
                made.append(network((inputs * torch.from_numpy(shown).view(1, -1, 1, 1))[None])[0].numpy())
    return np.stack(made)


def cosine_distance(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    """Return the mean cosine distance of corresponding rows, half of the squared distance of their directions."""
    first, second = (each / np.linalg.norm(each, axis=1, keepdims=True) for each in (a.astype(float), b.astype(float)))
    return float(np.mean(((first - second) ** 2).sum(axis=1) / 2))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "clips", nargs="?", type=Path, help="a folder; by default spacewalk/clips of STEPLINE_REAL_DATA"
    )
    parser.add_argument("--parity", type=Path, help="a folder with the reference outputs")
    given = parser.parse_args()
    folder = given.clips or Path(os.environ["STEPLINE_REAL_DATA"], "spacewalk/clips")
    timelines = {path: scan(path) for path in sorted(folder.glob("*.mp4"))}
    print("| preset | frames later by (s) | pictures differ by (levels) | cosine distance of vectors |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory() as staged:
        files = filled(given.parity, Path(staged)) if given.parity else {}
        for name, spec in presets().items():
            if not (released := presets().get(name + SUFFIX)):
                continue
            ours, theirs = ([seen(*each, version) for each in timelines.items()] for version in (spec, released))
            common = [min(len(a.t_s), len(b.t_s)) for a, b in zip(ours, theirs, strict=True)]
            later = [(b.t_s[:n] - a.t_s[:n]).ravel() for a, b, n in zip(ours, theirs, common, strict=True)]
            levels = [np.abs(a.clips - b.clips)[a.shown & b.shown].mean() for a, b in zip(ours, theirs, strict=True)]
            apart = "not computed"
            if spec.architecture in files:
                both = (
                    vectors(version, files[spec.architecture], of) for version, of in ((spec, ours), (released, theirs))
                )
                apart = f"{cosine_distance(*both):.2g}"
            print(f"| {name} | {np.nanmean(np.concatenate(later)):.4f} | {np.mean(levels):.2f} | {apart} |", flush=True)


if __name__ == "__main__":
    main()

"""The features stage on some videos, as in its job, with random weights or without a network."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import torch
from measure import sized

from stepline.availability import Record, write_availability
from stepline.backbones.registry import FAMILIES, presets
from stepline.backbones.s3d import S3D
from stepline.config import validate
from stepline.features.bank import Bank
from stepline.features.extract import Work, extract
from stepline.media.process import Limits
from stepline.media.timeline import scan
from stepline.spec import ClipSpec

LIMITS = Limits(memory_mb=2000, least_s=3600, s_per_video_s=4)
FAMILIES["stand_in"] = "stand_in"
FOUR = sized(
    ("s3d-htstep", "timesformer-htstep", "internvideo-seconds", "eva_clip-hirest"),
    small=("s3d-htstep", "internvideo-seconds"),
)
"""Presets at 16, 8, 1 and 1 frames per second. At a small size only those whose libraries are imported quickly."""
_runs = count()


def stand_in(name: str) -> ClipSpec:
    """Return a preset with the mean of the pixels instead of its network."""
    return replace(presets()[name], architecture="stand_in", weights=(), dimension=3, dtype="float32")


def s3d_weights(folder: Path) -> Path:
    """Write random weights of S3D, and return their path."""
    torch.manual_seed(0)
    path = folder / "s3d_howto100m.pth"
    torch.save(S3D("mixed_5c").state_dict(), path)
    return path


def record(video: Path) -> Record:
    """Return a video's record, with its path instead of its sha256."""
    return Record(video=video.stem, status="present", path=str(video), sha256=str(video), duration_s=scan(video).end_s)


def extracted(
    videos: Sequence[Path], folder: Path, specs: Sequence[ClipSpec], weights: Sequence[Path] = (), **options: Any
) -> list[Bank]:
    """Run the stage for ``specs`` in one pass, without earlier results, and return their features.

    options: of the configuration's ``features``, such as ``decoders``.
    """
    out = folder / f"run{next(_runs)}"
    out.mkdir()
    write_availability(out / "availability.json", [record(path) for path in videos])
    files = {path.name: path for path in weights}
    works = [Work(spec=spec, store=out / spec.name, files=files) for spec in specs]
    places = {"lock": out / "lock", "limits": LIMITS, "options": validate({"features": options})["features"]}
    for work in works:
        others = [other for other in works if other is not work]
        extract(out / "availability.json", [work, *others], out / "manifest.json", **places)
    return [Bank.open([work.store], work.spec) for work in works]

"""The families' own networks with random weights, made once: a family for the registry."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import torch

from stepline.backbones import eva_clip, internvideo, s3d, timesformer
from stepline.spec import ClipSpec

MADE: dict[str, Callable[[], torch.nn.Module]] = {
    "s3d": lambda: s3d.folded(s3d.S3D("mixed_5c")),
    "timesformer": lambda: timesformer.Timesformer(timesformer.Config()),
    "internvideo": lambda: internvideo.VideoTower(internvideo.Config()),
    "eva_clip": lambda: eva_clip.ImageTower(eva_clip.Config()),
}


def load(spec: ClipSpec, _files: Mapping[str, Path]) -> torch.nn.Module:
    """Return the network of a family."""
    return _made(spec.architecture)


@cache
def _made(architecture: str) -> torch.nn.Module:
    torch.manual_seed(0)
    network = MADE[architecture]().requires_grad_(False)
    if architecture != "s3d":
        for parameter in network.parameters():
            parameter.normal_(std=0.02)
    return network

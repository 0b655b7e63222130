"""The families' networks with random weights, created once: a family for the registry."""

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import torch

from stepline.backbones import eva_clip, internvideo, s3d, timesformer
from stepline.spec import ClipSpec


def scaled() -> torch.nn.Module:
    """Return S3D with weights for which its output neither vanishes nor ignores its input."""
    network = s3d.S3D("mixed_5c").requires_grad_(False)
    for name, parameter in network.named_parameters():
        if ".conv" in f".{name}" and parameter.dim() > 1:
            parameter.mul_(3)
    return s3d.folded(network)


def filled(network: torch.nn.Module) -> torch.nn.Module:
    """Replace the meta parameters of a network with uninitialised ones on the CPU, and return it."""
    for module in network.modules():
        for name, parameter in module.named_parameters(recurse=False):
            setattr(module, name, torch.nn.Parameter(torch.empty_like(parameter, device="cpu")))
    return network


MADE: dict[str, Callable[[], torch.nn.Module]] = {
    "s3d": scaled,
    "timesformer": lambda: timesformer.Timesformer(timesformer.Config()),
    "internvideo": lambda: internvideo.VideoTower(internvideo.Config()),
    "eva_clip": lambda: filled(eva_clip.ImageTower(eva_clip.Config())),
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

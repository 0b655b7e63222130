"""The presets' networks with random weights. At a small size they have other dimensions."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch
from measure import SMALL, sized
from torch import nn
from updates import DEVICE

from stepline.backbones import s3d
from stepline.backbones.registry import FAMILIES, presets
from stepline.spec import ClipSpec

SIDE = sized(224, small=32)
"""The sides of pictures."""
WIDTH, FRAMES = 32, 30
"""The width of transformers, and the most frames of a clip, at a small size."""


def scaled(output: str, normalise: bool, _frames: int) -> s3d.S3D:
    """Return S3D with weights for which its output neither vanishes nor ignores its input."""
    network = s3d.S3D(output, normalise=normalise).requires_grad_(False)
    for name, parameter in network.named_parameters():
        if ".conv" in f".{name}" and parameter.dim() > 1:
            parameter.mul_(3)
    return s3d.folded(network)


def filled(network: nn.Module) -> nn.Module:
    """Replace all parameters of a transformer by random ones for which its layers keep the scale of their input."""
    for module in network.modules():
        for name, old in module.named_parameters(recurse=False):
            new = torch.randn(old.shape, device=DEVICE)
            if old.dim() > 1:
                new *= old[0].numel() ** -0.5
            else:
                new = float(name == "weight") + 0.1 * new
            setattr(module, name, nn.Parameter(new, requires_grad=False))
    return network


def _timesformer(_output: str, normalise: bool, _frames: int) -> nn.Module:
    from stepline.backbones import timesformer

    config = timesformer.Config(**sized({}, small={"image_size": SIDE, "width": WIDTH, "depth": 1, "heads": 2}))
    return filled(timesformer.Timesformer(config, normalise=normalise))


def _internvideo(_output: str, normalise: bool, _frames: int) -> nn.Module:
    from stepline.backbones import internvideo

    small = {
        "image": SIDE,
        "patch": 16,
        "width": WIDTH,
        "dimension": WIDTH,
        "layers": 1,
        "heads": 2,
        "extractors": (0,),
    }
    return filled(internvideo.VideoTower(internvideo.Config(**sized({}, small=small)), normalise=normalise))


def _eva_clip(_output: str, normalise: bool, _frames: int) -> nn.Module:
    from stepline.backbones import eva_clip

    small = {"image": SIDE, "patch": 16, "width": WIDTH, "dimension": WIDTH, "layers": 1, "heads": 2}
    return filled(eva_clip.ImageTower(eva_clip.Config(**sized({}, small=small)), normalise=normalise))


def _egovlp(_output: str, normalise: bool, frames: int) -> nn.Module:
    from stepline.backbones import egovlp

    small = {"image_size": SIDE, "width": WIDTH, "dimension": WIDTH, "depth": 1, "heads": 2}
    config = egovlp.Config(frames=frames, **sized({}, small=small))
    return filled(egovlp.VideoTower(config, normalise=normalise))


def _videoclip(output: str, _normalise: bool, _frames: int) -> nn.Module:
    from stepline.backbones import videoclip

    small = {"width": WIDTH, "heads": 2, "intermediate": WIDTH, "vocabulary": 200, "video_layers": 1}
    tower = filled(videoclip.VideoTower(videoclip.Config(**sized({}, small=small))))
    vectors = scaled("video_embedding", True, 0)
    return videoclip.VideoClip(vectors, tower, half=output == "pooled_video_of_float16")


NETWORKS: dict[str, Callable[[str, bool, int], nn.Module]] = {
    "s3d": scaled,
    "timesformer": _timesformer,
    "internvideo": _internvideo,
    "eva_clip": _eva_clip,
    "egovlp": _egovlp,
    "videoclip": _videoclip,
}


def random_presets() -> dict[str, ClipSpec]:
    """Return the presets, and let the features stage load random weights for them."""
    FAMILIES.update(dict.fromkeys(NETWORKS, "random_weights"))
    return {name: _small(spec) if SMALL else spec for name, spec in presets().items()}


def _small(spec: ClipSpec) -> ClipSpec:
    steps = tuple(tuple(SIDE if each == 224 else each for each in step) for step in spec.steps)
    dimension = spec.dimension if spec.architecture == "s3d" else WIDTH
    return replace(spec, steps=steps, num_frames=min(FRAMES, spec.num_frames), dimension=dimension)


def load(spec: ClipSpec, _files: Mapping[str, Path]) -> nn.Module:
    """Return the network of a preset, which is created once."""
    return _made(*network_of(spec))


def network_of(spec: ClipSpec) -> tuple[str, str, bool, int]:
    """Return the fields of a preset that determine its network: all but EgoVLP's accept any number of frames."""
    frames = spec.num_frames if spec.architecture == "egovlp" else 0
    return spec.architecture, spec.output, spec.normalise, frames


@cache
def _made(architecture: str, output: str, normalise: bool, frames: int) -> nn.Module:
    torch.manual_seed(0)
    return NETWORKS[architecture](output, normalise, frames)

"""EVA-01-CLIP ViT-g/14 (Sun et al., 2023): timm's vision transformer and open_clip's text tower, as ``EVA01-g-14``.

Parameters are named as in eva_clip_psz14.pt of baaivision/EVA, without ``visual.`` and ``text.``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepline.backbones import checkpoint, clip_text
from stepline.backbones.torchvision import make_importable
from stepline.spec import ClipSpec, TextSpec


@dataclass(frozen=True, kw_only=True)
class Config:
    """The dimensions."""

    dimension: int = 1024
    image: int = 224
    patch: int = 14
    width: int = 1408
    heads: int = 16
    layers: int = 40
    mlp_ratio: float = 4.3637
    text: clip_text.Config = field(default_factory=lambda: clip_text.Config(dimension=1024, quick_gelu=False))


class ImageTower(nn.Module):
    """The image tower, uninitialised until ``fill``."""

    def __init__(self, config: Config, *, normalise: bool = False) -> None:
        super().__init__()
        make_importable()
        from timm import create_model

        self.normalise = normalise
        with torch.device("meta"):
            trunk = create_model(
                "eva_giant_patch14_224",
                num_classes=config.dimension,
                global_pool="token",
                img_size=config.image,
                patch_size=config.patch,
                embed_dim=config.width,
                num_heads=config.heads,
                depth=config.layers,
                mlp_ratio=config.mlp_ratio,
            )
        for module in trunk.modules():
            for no_bias_of_keys, buffer in module.named_buffers(recurse=False):
                setattr(module, no_bias_of_keys, torch.zeros_like(buffer, device="cpu"))
        self.trunk = trunk

    def forward(self, clips: Tensor) -> Tensor:
        """Return the (B, D) vectors of the first frame of normalised (B, 3, T, H, W) clips."""
        x: Tensor = self.trunk(clips[:, :, 0])
        return functional.normalize(x, dim=1) if self.normalise else x


def load(spec: ClipSpec, files: Mapping[str, Path]) -> ImageTower:
    """Return the network of ``spec`` with the published weights; raises the errors of ``checkpoint``."""
    (path,) = files.values()
    network = ImageTower(Config(), normalise=spec.normalise)
    fill(network.trunk, state(path), "visual.", path)
    return network.eval()


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> clip_text.CausalTextEncoder:
    """Return the text tower with the published weights; raises the errors of ``checkpoint``."""
    (path,) = files.values()
    tower = clip_text.tower(Config().text)
    fill(tower, state(path), "text.", path)
    return clip_text.CausalTextEncoder(spec, tower)


def state(path: Path) -> checkpoint.Tensors:
    """Return the tensors of a checkpoint, with or without the wrappers that training adds."""
    held = checkpoint.state(path, inside=("model", "module", "state_dict"))
    return {name.removeprefix("module."): value for name, value in held.items()}


def fill(network: nn.Module, tensors: checkpoint.Tensors, prefix: str, path: Path) -> None:
    """Load the tensors under ``prefix`` into a tower and prepare it for inference."""
    own = {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
    checkpoint.load(network, own, model="eva_clip", path=path, ignore=("logit_scale",))
    network.eval().requires_grad_(False)

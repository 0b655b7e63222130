"""A custom network that is never run, and EVA-CLIP's text tower with random weights."""

from collections.abc import Mapping
from pathlib import Path

import torch

from stepline.spec import ClipSpec, TextSpec

SPEC = ClipSpec(
    name="random",
    label="1fps",
    revision=1,
    architecture="file",
    weights=(),
    licence="Apache-2.0",
    fps=1,
    num_frames=1,
    steps=(("exact", 224, 224, "bilinear"),),
    mean=(0, 0, 0),
    std=(1, 1, 1),
    output="none",
    dimension=1024,
)
TEXT = TextSpec(
    name="random-text",
    label="text_embed",
    revision=1,
    architecture="file",
    weights=(),
    licence="Apache-2.0",
    max_tokens=77,
    output="text_embed",
    normalise=True,
    dimension=1024,
)


def load(_spec: ClipSpec, _files: Mapping[str, Path]) -> torch.nn.Module:
    """Return a network that cannot be run."""
    return torch.nn.Identity()


def load_text(spec: TextSpec, _files: Mapping[str, Path]) -> object:
    """Return the tower."""
    from stepline.backbones import clip_text, eva_clip

    torch.manual_seed(0)
    tower = clip_text.tower(eva_clip.Config().text).eval().requires_grad_(False)
    for parameter in tower.parameters():
        parameter.normal_(std=0.02)
    return clip_text.CausalTextEncoder(spec, tower)

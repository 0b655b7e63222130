"""Loads checkpoints of the released ActionFormer (github.com/happyharrycn/actionformer_release, ``epoch_*.pth.tar``)
into networks of ``models.actionformer``."""

import re
from pathlib import Path
from typing import Any

import torch

from stepline.backbones import checkpoint
from stepline.backbones.checkpoint import Tensors
from stepline.errors import ConfigError, StoreError
from stepline.models.actionformer import ActionFormer
from stepline.models.actionformer_config import ActionFormerConfig

PREFIX = "module."
"""The name prefix of networks trained with data parallelism, as all released ones."""
SCALES = re.compile(r"reg_head\.scale\.(\d+)\.scale")
"""Parameter names of the offset scales of the levels."""
NAMES = (
    (r"backbone\.embd\.(\d+)\.conv", r"embedding.\1"),
    (r"backbone\.embd_norm", "embedding_norms"),
    (r"backbone\.stem\.(\d+)", r"blocks.\1"),
    (r"neck\.fpn_norms", "pyramid.norms"),
    (r"neck\.lateral_convs\.(\d+)\.conv", r"pyramid.lateral.\1"),
    (r"neck\.fpn_convs\.(\d+)\.conv", r"pyramid.depthwise.\1"),
    (r"cls_head\.cls_head\.conv", "class_head.output"),
    (r"reg_head\.offset_head\.conv", "offset_head.output"),
    (r"cls_head", "class_head"),
    (r"reg_head", "offset_head"),
)
ENDS = (
    (r"class_head\.norm\.", "class_head.norms."),
    (r"offset_head\.norm\.", "offset_head.norms."),
    (r"class_head\.head\.(\d+)\.conv\.", r"class_head.layers.\1."),
    (r"offset_head\.head\.(\d+)\.conv\.", r"offset_head.layers.\1."),
    (r"ln1\.", "norm."),
    (r"ln2\.", "inner_norm."),
    (r"attn\.(query|key|value)_conv\.conv\.", r"attention.around.\1."),
    (r"attn\.(query|key|value)_norm\.", r"attention.norms.\1."),
    (r"attn\.(query|key|value)\.", r"attention.maps.\1."),
    (r"attn\.proj\.", "attention.output."),
    (r"attn\.rel_pe", "attention.relative"),
    (r"mlp\.0\.", "inner."),
    (r"mlp\.3\.", "outer."),
    (r"drop_path_attn\.", "attended."),
    (r"drop_path_mlp\.", "fed."),
)
"""Ends of parameter names, and their replacements."""


def load_released(path: Path, **settings: Any) -> ActionFormer:
    """Return the averaged network of a released checkpoint, on the CPU, in evaluation mode.

    Its sizes come from the tensors. settings: other fields of ``ActionFormerConfig``; no checkpoint contains
    ``max_length`` and ``window``. Raises StoreError if the file is damaged or contains another network. No code in the
    file is executed.
    """
    return network_of(checkpoint.state(path, inside=("state_dict_ema", "state_dict"), prefix=PREFIX), path, **settings)


def network_of(tensors: Tensors, path: Path, **settings: Any) -> ActionFormer:
    """Return the network of a released state dict; see ``load_released``. path: its file, for error messages."""
    try:
        with torch.device("meta"):
            network = ActionFormer(_config(tensors, settings))
    except KeyError as error:
        looks = checkpoint.looks_like(tensors)
        raise StoreError(f"{path} is not ActionFormer: {error} is not there; {looks}") from None
    except (ConfigError, IndexError, RuntimeError, ValueError) as error:
        raise StoreError(f"{path} is not ActionFormer ({error}); {checkpoint.looks_like(tensors)}") from None
    checkpoint.load(network, ours(tensors), model="ActionFormer", path=path)
    return network.eval()


def _config(tensors: Tensors, settings: dict[str, Any]) -> ActionFormerConfig:
    embed, feature_dim, kernel = tensors["backbone.embd.0.conv.weight"].shape
    classes, head_dim, head_kernel = tensors["cls_head.cls_head.conv.weight"].shape
    arch = (_count(tensors, "backbone.embd"), _count(tensors, "backbone.stem"), _count(tensors, "backbone.branch"))
    scaled = "backbone.stem.0.drop_path_attn.scale" in tensors
    return ActionFormerConfig(
        **{
            "feature_dim": feature_dim,
            "classes": classes,
            "embed": embed,
            "pyramid_dim": tensors["neck.fpn_norms.0.weight"].shape[1],
            "head_dim": head_dim,
            "kernel": kernel,
            "head_kernel": head_kernel,
            "arch": arch,
            "head_layers": 1 + _count(tensors, "cls_head.head"),
            "pyramid": "fpn" if "neck.fpn_convs.0.conv.weight" in tensors else "identity",
            "relative": any(name.endswith("rel_pe") for name in tensors),
            "droppath": ActionFormerConfig.droppath if scaled else 0.0,
            **settings,
        }
    )


def _count(tensors: Tensors, prefix: str) -> int:
    """Return the number of numbered parts after a prefix."""
    parts = len(prefix.split("."))
    return len({name.split(".")[parts] for name in tensors if name.startswith(f"{prefix}.")})


def ours(tensors: Tensors) -> Tensors:
    """Return the tensors of a released network with our names and shapes."""
    stem = _count(tensors, "backbone.stem")
    made: Tensors = {}
    scales: dict[int, torch.Tensor] = {}
    for name, value in tensors.items():
        if found := SCALES.fullmatch(name):
            scales[int(found[1])] = value
            continue
        renamed = re.sub(r"^backbone\.branch\.(\d+)", lambda found: f"blocks.{stem + int(found[1])}", name)
        for pattern, replacement in NAMES:
            renamed = re.sub(rf"^{pattern}\b", replacement, renamed)
        for pattern, replacement in ENDS:
            renamed = re.sub(rf"\b{pattern}", replacement, renamed)
        made[renamed] = value
        if value.dim() == 3 and len(value) == 1 and "conv" not in name:
            made[renamed] = value[0, :, 0]
        if name.endswith(".scale"):
            made[renamed] = value[0]
        if name.endswith("rel_pe"):
            made[renamed] = value[0, 0]
    return made | {"scales": torch.stack([scales[number] for number in sorted(scales)])}

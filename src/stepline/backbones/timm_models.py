"""Image models of timm: the pooled features before the classifier."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import timm
import torch
from timm.data.config import resolve_data_config
from timm.models import get_pretrained_cfg

from stepline.backbones import checkpoint
from stepline.backbones.named import slug, unknown
from stepline.backbones.still import Still
from stepline.backbones.weights import HUB, File, Weights
from stepline.errors import ConfigError
from stepline.spec import ClipSpec, Step

METHODS = {"bicubic": "pil_bicubic", "bilinear": "pil_bilinear"}


def weights(name: str, model: str) -> Weights:
    """Return the model's file on the hub or at timm's own address."""
    published = _published(name, model)
    if published.hf_hub_id:
        repository, _, revision = published.hf_hub_id.partition("@")
        origin, file = f"{HUB}/{repository}", published.hf_hub_filename or "model.safetensors"
        url = f"{origin}/resolve/{revision or 'main'}/{file}"
    else:
        url = origin = published.url
    return Weights(
        name=slug(name),
        files=(File(name=url.rpartition("/")[2], url=url),),
        origin=origin,
        licence=published.license or "not stated",
    )


def describe(name: str, model: str, _: Mapping[str, Path]) -> tuple[ClipSpec, None]:
    """Return the spec of the model's features, with timm's evaluation preprocessing."""
    published = _published(name, model)
    data: dict[str, Any] = resolve_data_config(pretrained_cfg=published.to_dict())  # type: ignore[no-untyped-call]
    channels, height, width = data["input_size"]
    mode, method = data["crop_mode"], METHODS.get(data["interpolation"])
    if (channels, height) != (3, width) or method is None or mode == "border":
        raise ConfigError(
            f"{name} takes {channels} x {height} x {width} values, {data['interpolation']}, crop mode {mode}: only "
            "RGB squares, bicubic or bilinear, centre or squash are supported: write this one as a model by file"
        )
    scaled = math.floor(height / data["crop_pct"])
    scale: Step = ("exact", scaled, scaled, method) if mode == "squash" else ("short_side", scaled, method)
    with torch.device("meta"):
        network: Any = timm.create_model(model)
    clip = ClipSpec(
        name=slug(name),
        label="features",
        revision=1,
        architecture="timm",
        model=f"{published.architecture}.{published.tag}" if published.tag else published.architecture,
        weights=(name,),
        licence=published.license or "not stated",
        fps=1,
        num_frames=1,
        steps=(scale, ("centre_crop", height, "round")),
        mean=data["mean"],
        std=data["std"],
        output="features",
        dimension=network.head_hidden_size,
    )
    return clip, None


def load(spec: ClipSpec, files: Mapping[str, Path]) -> Still:
    """Return the network with its weights, loaded strictly but for its classifier, which is not used.

    A file that timm does not load may have another classifier or none, or names with a prefix.
    """
    (path,) = files.values()
    tensors = checkpoint.state(path, inside=("state_dict", "model"))
    try:
        overlay = {"state_dict": dict(tensors)}
        network: Any = timm.create_model(spec.model, pretrained=True, pretrained_cfg_overlay=overlay)
        network.reset_classifier(0)
    except Exception:  # noqa: BLE001 - timm's conversions expect a file of another form; the next lines say what is wrong
        network = timm.create_model(spec.model)
        whole = network.state_dict().keys()
        network.reset_classifier(0)
        unused = whole - network.state_dict().keys()
        checkpoint.load(network, tensors, model=spec.model, path=path, ignore=(*checkpoint.HEADS, *unused))
    return Still(network, network, normalise=spec.normalise)


def _published(name: str, model: str) -> Any:
    try:
        published = get_pretrained_cfg(model)
    except RuntimeError:
        published = None
    if published is None or not published.has_weights:
        raise unknown(name, "timm:", timm.list_models(pretrained=True))
    return published

"""CLIP models of open_clip: both towers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import open_clip
from open_clip.convert import convert_state_dict
from open_clip.model import convert_to_custom_text_state_dict

from stepline.backbones import checkpoint
from stepline.backbones.clip_text import TextEncoder
from stepline.backbones.named import HUB, slug, unknown
from stepline.backbones.still import Still
from stepline.backbones.weights import File, Weights
from stepline.errors import ConfigError
from stepline.spec import ClipSpec, Step, TextSpec

METHODS = {"bicubic": "pil_bicubic", "bilinear": "pil_bilinear"}


def weights(name: str, model: str) -> Weights:
    """Return the model's file on the hub or at open_clip's own address."""
    _, published = _published(name, model)
    if published["hf_hub"]:
        repository, _, file = published["hf_hub"].rpartition("/")
        origin = f"{HUB}/{repository}"
        url = f"{origin}/resolve/main/{file or 'open_clip_model.safetensors'}"
    else:
        url = origin = published["url"]
    file = url.rpartition("/")[2]
    return Weights(name=slug(name), files=(File(name=file, url=url),), origin=origin, licence="see its origin")


def describe(name: str, model: str, _: Mapping[str, Path]) -> tuple[ClipSpec, TextSpec | None]:
    """Return the specs of the towers, with open_clip's preprocessing for these weights."""
    config, published = _published(name, model)
    size, method = config["vision_cfg"]["image_size"], METHODS[published["interpolation"]]
    scale: dict[str, tuple[Step, ...]] = {
        "shortest": (("short_side", size, method), ("centre_crop", size, "round")),
        "squash": (("exact", size, size, method),),
    }
    clip = ClipSpec(
        name=slug(name),
        label="image_embed",
        revision=1,
        architecture="open_clip",
        model=model,
        weights=(name,),
        licence="see its origin",
        fps=1,
        num_frames=1,
        steps=scale[published["resize_mode"]],
        mean=published["mean"],
        std=published["std"],
        output="image_embed",
        dimension=config["embed_dim"],
    )
    if "hf_tokenizer_name" in config["text_cfg"]:
        return clip, None
    text = TextSpec(
        name=f"{clip.name}-text",
        label="text_embed",
        revision=1,
        architecture="open_clip",
        weights=(name,),
        licence="see its origin",
        max_tokens=config["text_cfg"].get("context_length", 77),
        output="text_embed",
        dimension=clip.dimension,
    )
    return clip, text


def load(spec: ClipSpec, files: Mapping[str, Path]) -> Still:
    """Return the image tower with its weights."""
    network = _loaded(spec.model, files)
    return Still(network, network.encode_image, normalise=spec.normalise)


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> TextEncoder:
    """Return the text tower with its weights."""
    model = spec.weights[0].partition(":")[2]
    network = _loaded(model, files)
    tokenizer = open_clip.get_tokenizer(model.rpartition("/")[0])
    return TextEncoder(spec, lambda text: tokenizer(text)[0].tolist(), network.encode_text)


def _loaded(model: str, files: Mapping[str, Path]) -> Any:
    (path,) = files.values()
    network = open_clip.create_model(model.rpartition("/")[0], load_weights=False)
    held = checkpoint.state(path, inside=("state_dict",))
    tensors = convert_state_dict(network, {name.removeprefix("module."): value for name, value in held.items()})
    if "positional_embedding" in tensors and not hasattr(network, "positional_embedding"):
        tensors = convert_to_custom_text_state_dict(tensors)
    scales = {name: value for name, value in network.state_dict().items() if name in ("logit_scale", "logit_bias")}
    checkpoint.load(network, {**tensors, **scales}, model=model, path=path, ignore=("*.position_ids", "logit_bias"))
    return network.eval().requires_grad_(False)


def _published(name: str, model: str) -> tuple[Any, Any]:
    architecture, _, tag = model.rpartition("/")
    published = open_clip.get_pretrained_cfg(architecture, tag)
    if not published:
        raise unknown(name, "open_clip:", ("/".join(each) for each in open_clip.list_pretrained()))
    config = open_clip.get_model_config(architecture)
    if published.get("quick_gelu", False) and not config.get("quick_gelu", False):
        raise ConfigError(f"{name} was trained with QuickGELU: name it open_clip:{architecture}-quickgelu/{tag}")
    return config, published

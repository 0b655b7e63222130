"""CLIP models of open_clip: both towers."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import open_clip
from open_clip.convert import convert_state_dict
from open_clip.model import convert_to_custom_text_state_dict
from open_clip.tokenizer import get_clean_fn

from stepline.backbones import checkpoint, tokens
from stepline.backbones.clip_text import TextEncoder
from stepline.backbones.named import TOKENIZER, slug, unknown
from stepline.backbones.still import Still
from stepline.backbones.weights import HUB, File, Weights
from stepline.errors import ConfigError, StoreError
from stepline.io import read_json
from stepline.spec import ClipSpec, Step, TextSpec

METHODS = {"bicubic": "pil_bicubic", "bilinear": "pil_bilinear"}
SCALES = "logit_scale", "logit_bias"
"""Parameters of the loss."""
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")
"""A tokenizer's steps, and its special tokens."""


def weights(name: str, model: str) -> Weights:
    """Return the model's file on the hub or at open_clip's own address, or the files of its tokenizer on the hub."""
    config, published = _published(name, model.removesuffix(TOKENIZER))
    if model.endswith(TOKENIZER):
        origin = f"{HUB}/{config['text_cfg']['hf_tokenizer_name']}"
        files = tuple(File(name=file, url=f"{origin}/resolve/main/{file}") for file in TOKENIZER_FILES)
        return Weights(name=slug(name), files=files, origin=origin, licence="see its origin")
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
    text = TextSpec(
        name=f"{clip.name}-text",
        label="text_embed",
        revision=1,
        architecture="open_clip",
        weights=(name, f"{name}{TOKENIZER}") if "hf_tokenizer_name" in config["text_cfg"] else (name,),
        licence="see its origin",
        max_tokens=config["text_cfg"].get("context_length", 77),
        output="text_embed",
        dimension=clip.dimension,
    )
    return clip, text


def load(spec: ClipSpec, files: Mapping[str, Path]) -> Still:
    """Return the image tower with its weights. The text tower's may be absent."""
    network = _loaded(spec.model, files, lambda name: name.startswith("visual."))
    return Still(network, network.encode_image, normalise=spec.normalise)


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> TextEncoder:
    """Return the text tower with its weights. The image tower's may be absent."""
    model = spec.weights[0].partition(":")[2]
    network = _loaded(model, files, lambda name: not name.startswith("visual."))
    architecture = model.rpartition("/")[0]
    if len(spec.weights) > 1:
        return TextEncoder(spec, _hub_tokenizer(architecture, files, spec.max_tokens), network.encode_text)
    tokenizer = open_clip.get_tokenizer(architecture)
    return TextEncoder(spec, lambda text: tokenizer(text)[0].tolist(), network.encode_text)


def _hub_tokenizer(architecture: str, files: Mapping[str, Path], length: int) -> Callable[[str], list[int]]:
    """Return the function from a text to ``length`` token ids, equal to ``open_clip.tokenizer.HFTokenizer``.

    It does not depend on transformers, whose versions build tokenizers in different ways.
    """
    settings, tokenizer = read_json(files["tokenizer_config.json"]), tokens.read(files["tokenizer.json"], length)

    def special(key: str, of_bert: str) -> int:
        found = settings.get(key) or of_bert
        token = found["content"] if isinstance(found, dict) else found
        number = tokenizer.token_to_id(token)
        if number is None:
            raise StoreError(f"{files['tokenizer.json']} does not contain the {key} {token}: download it again")
        return number

    padding = special("pad_token", "[PAD]")
    tokenizer.enable_padding(length=length, pad_id=padding, direction=settings.get("padding_side", "right"))
    options = open_clip.get_model_config(architecture)["text_cfg"].get("tokenizer_kwargs", {})
    clean = get_clean_fn(options.get("clean", "whitespace"))
    zero = special("sep_token", "[SEP]") if options.get("strip_sep_token") else None
    return lambda text: [0 if each == zero else each for each in tokenizer.encode(clean(text)).ids]


def _loaded(model: str, files: Mapping[str, Path], used: Callable[[str], bool]) -> Any:
    """Return the network with the weights whose names are ``used``; the others stay as they are."""
    (path,) = (path for name, path in files.items() if name not in TOKENIZER_FILES)
    _, published = _published(f"open_clip:{model}", model)
    network = open_clip.create_model(
        model.rpartition("/")[0], load_weights=False, force_quick_gelu=published.get("quick_gelu", False)
    )
    held, _ = checkpoint.unwrapped(checkpoint.state(path, inside=("state_dict",)), network, model=model, path=path)
    tensors = convert_state_dict(network, held)
    if "positional_embedding" in tensors and not hasattr(network, "positional_embedding"):
        tensors = convert_to_custom_text_state_dict(tensors)
    own = {name: value for name, value in network.state_dict().items() if name in SCALES or not used(name)}
    mine = {name: value for name, value in tensors.items() if used(name)}
    checkpoint.load(network, mine | own, model=model, path=path, ignore=("*.position_ids", "logit_bias"))
    return network.eval().requires_grad_(False)


def _published(name: str, model: str) -> tuple[Any, Any]:
    architecture, _, tag = model.rpartition("/")
    published = open_clip.get_pretrained_cfg(architecture, tag)
    if not published:
        raise unknown(name, "open_clip:", ("/".join(each) for each in open_clip.list_pretrained()))
    config = open_clip.get_model_config(architecture)
    if inner := config["text_cfg"].get("hf_model_name"):
        raise ConfigError(
            f"{name} is not supported: its text tower is {inner}, which open_clip downloads when it loads"
        )
    return config, published

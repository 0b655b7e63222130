"""Image models of Hugging Face transformers: the pooled features, or both towers of a CLIP."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import torch
import transformers
from transformers import AutoConfig, AutoImageProcessor, AutoModel
from transformers.image_processing_backends import TorchvisionBackend

from stepline.backbones import checkpoint, tokens
from stepline.backbones.clip_text import TextEncoder
from stepline.backbones.named import TOKENIZER, slug
from stepline.backbones.picture import picture
from stepline.backbones.still import Still
from stepline.backbones.weights import HUB, File, Weights
from stepline.errors import ConfigError, StoreError
from stepline.media.frame import ArrayFrame
from stepline.spec import ClipSpec, Step, TextSpec

FILES = ("config.json", "model.safetensors")
PROCESSORS = ("processor_config.json", "preprocessor_config.json")
"""The files that may contain the processor; transformers uses the first one."""
INDEX = "model.safetensors.index.json"
"""The list of the files of a model in several files."""
KERNELS = {1: "lanczos", 2: "bilinear", 3: "bicubic"}
"""Resampling filters by their number in Pillow."""
LEVELS = 2.01
"""The largest difference from a processor that resizes 8-bit tensors, in levels of 255: their roundings differ.

On noise it is 1 in a few values, and 2 in one of 10,000 if a picture is scaled to about its own size.
"""
GEMMA = 256_000
"""The size of Gemma's vocabulary. A SigLIP with it is a SigLIP 2, which is trained with lower-case texts."""

transformers.logging.set_verbosity_error()  # type: ignore[no-untyped-call]
transformers.logging.disable_progress_bar()  # type: ignore[no-untyped-call]


def weights(name: str, model: str) -> Weights:
    """Return the repository's files at the revision."""
    return hub_weights(name, model, FILES, PROCESSORS)


def hub_weights(name: str, model: str, required: Sequence[str], optional: Sequence[str] = ()) -> Weights:
    """Return these files of the repository at the revision, or its tokenizer. Optional files are fetched first."""
    repository, at, revision = model.removesuffix(TOKENIZER).partition("@")
    if not (at and revision and repository.count("/") == 1) or "#" in revision:
        form = f"{name.partition(':')[0]}:<owner>/<name>@<revision>"
        raise ConfigError(f"backbone {name!r} is not known: name a model of the hub as {form}")
    if model.endswith(TOKENIZER):
        required, optional = ["tokenizer.json"], []
    origin = f"{HUB}/{repository}"
    address = f"{origin}/resolve/{quote(revision, safe='')}"
    instead = {"model.safetensors": INDEX}
    return Weights(
        name=slug(name),
        files=tuple(
            File(name=file, url=f"{address}/{file}", optional=file in optional, instead=instead.get(file, ""))
            for file in (*optional, *required)
        ),
        origin=origin,
        licence="see its origin",
    )


def describe(name: str, model: str, files: Mapping[str, Path]) -> tuple[ClipSpec, TextSpec | None]:
    """Return the specs of the model, with the preprocessing of its own processor."""
    config = configuration(name, files)
    if config.model_type == "siglip2":
        raise ConfigError(
            f"{name} takes pictures of any shape (NaFlex), which is not supported: name a SigLIP 2 with one size, as "
            "hf:google/siglip2-base-patch16-256@main"
        )
    try:
        steps, mean, std, shape = _prepared(name, files["config.json"].parent)
        with torch.device("meta"):
            network, pictures = AutoModel.from_config(config).eval(), torch.zeros(1, *shape)  # type: ignore[no-untyped-call]
        output = _output(network, pictures, files)
        _, dimension = _image(network, output)(pictures).shape
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        what = "is not an image model that can be used by name (hf-video is for videos)"
        raise ConfigError(f"{name} {what}: {reason}") from None
    clip = ClipSpec(
        name=slug(name),
        label=output,
        revision=1,
        architecture="hf",
        model=model,
        weights=(name,),
        licence="see its origin",
        fps=1,
        num_frames=1,
        steps=steps,
        mean=mean,
        std=std,
        output=output,
        dimension=dimension,
    )
    if output != "image_embed":
        return clip, None
    text = TextSpec(
        name=f"{clip.name}-text",
        label="text_embed",
        revision=2 if _second_siglip(config) else 1,
        architecture="hf",
        weights=(name, f"{name}{TOKENIZER}"),
        licence="see its origin",
        max_tokens=config.text_config.max_position_embeddings,
        output="text_embed",
        dimension=dimension,
    )
    return clip, text


def load(spec: ClipSpec, files: Mapping[str, Path]) -> Still:
    """Return the network with its weights."""
    network = loaded(spec.weights[0], files, pooled=spec.output != "first_token")
    return Still(network, _image(network, spec.output), normalise=spec.normalise)


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> TextEncoder:
    """Return the text tower with its weights. SigLIP gets padded texts, as in its training."""
    network = loaded(spec.weights[0], files)
    config, second, padding = network.config, _second_siglip(network.config), None
    if config.model_type == "siglip":
        padding = 0 if second else config.text_config.pad_token_id  # SigLIP 2's configuration has that of SigLIP
    encode = tokenizer(files, spec, padding)
    return TextEncoder(
        spec,
        lambda text: encode(text.lower() if second else text),
        lambda ids: network.get_text_features(input_ids=ids).pooler_output,
    )


def tokenizer(files: Mapping[str, Path], spec: TextSpec, padding: int | None = None) -> Callable[[str], list[int]]:
    """Return the function from a text to its tokens' ids. padding: fills up the ids to the maximum number."""
    made = tokens.read(files["tokenizer.json"], spec.max_tokens)
    if padding is not None:
        made.enable_padding(length=spec.max_tokens, pad_id=padding)
    return lambda text: list(made.encode(text).ids)


def _second_siglip(config: Any) -> bool:
    return bool(config.model_type == "siglip" and config.text_config.vocab_size == GEMMA)


def configuration(name: str, files: Mapping[str, Path]) -> Any:
    """Return the model's configuration; raise ConfigError if transformers does not know it."""
    try:
        return AutoConfig.from_pretrained(files["config.json"].parent, local_files_only=True, trust_remote_code=False)
    except (OSError, KeyError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(f"{name} has no configuration that transformers knows: {reason}") from None


def loaded(name: str, files: Mapping[str, Path], *, pooled: bool = False) -> Any:
    """Return the network with its weights; raise StoreError if the file lacks some. pooled: the pooler's too."""
    path = files.get("model.safetensors") or files[INDEX]
    config, tensors, prefix = configuration(name, files), _tensors(files), ""
    with torch.device("meta"):
        plain = AutoModel.from_config(config)  # type: ignore[no-untyped-call]
    try:
        network, wrong = _filled(plain, tensors, pooled)
        if any(wrong.values()):
            inner, prefix = checkpoint.unwrapped(tensors, plain, model=name, path=path)
            network, wrong = _filled(plain, inner, pooled)
    except RuntimeError as error:
        raise StoreError(f"{path} is not {name}: {' '.join(str(error).split())[:200]}") from None
    checkpoint.check(name, path, prefix, wrong, tensors)
    return network.eval().requires_grad_(False)


def _filled(plain: Any, tensors: checkpoint.Tensors, pooled: bool) -> tuple[Any, Mapping[str, Sequence[str]]]:
    """Return the network with these weights, whose names transformers converts, and the names that are wrong."""
    network, found = type(plain).from_pretrained(
        None,
        config=plain.config,
        state_dict=tensors,
        dtype=torch.float32,
        ignore_mismatched_sizes=True,
        output_loading_info=True,
    )
    missing = sorted(key for key in found["missing_keys"] if pooled or not key.startswith("pooler."))
    others = [f"{key} is {list(ours)}, not {list(wanted)}" for key, ours, wanted in sorted(found["mismatched_keys"])]
    return network, {"missing": missing, "of another form": others}


def _tensors(files: Mapping[str, Path]) -> checkpoint.Tensors:
    parts = (checkpoint.state(path) for name, path in files.items() if name.endswith(".safetensors"))
    return {name: tensor for part in parts for name, tensor in part.items()}


def _output(network: Any, pictures: torch.Tensor, files: Mapping[str, Path]) -> str:
    """Return the output used as features: the pooled output, or the first token if the file has no pooler."""
    if hasattr(network, "get_image_features"):
        return "image_embed"
    poolers = [name for name, _ in network.named_parameters() if name.startswith("pooler.")]
    held = _tensors(files) if poolers else {}
    trained = all(any(name.endswith(pooler) for name in held) for pooler in poolers)
    pooled = getattr(network(pixel_values=pictures), "pooler_output", None)
    return "pooler_output" if trained and pooled is not None else "first_token"


def _image(network: Any, output: str) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a function from (B, 3, H, W) images to that output."""
    return {
        "image_embed": lambda pictures: network.get_image_features(pixel_values=pictures).pooler_output,
        "pooler_output": lambda pictures: network(pixel_values=pictures).pooler_output.flatten(1),
        "first_token": lambda pictures: network(pixel_values=pictures).last_hidden_state[:, 0],
    }[output]


def _prepared(name: str, folder: Path) -> tuple[tuple[Step, ...], Any, Any, tuple[int, ...]]:
    """Return the image processor's steps, mean, deviation and output shape."""
    try:
        processor: Any = AutoImageProcessor.from_pretrained(  # type: ignore[no-untyped-call]
            folder, local_files_only=True, trust_remote_code=False, backend="pil"
        )
    except (ImportError, OSError, KeyError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(f"{name} has no processor that transformers knows: {reason}") from None
    if not isinstance(processor, TorchvisionBackend):
        return verified(name, processor, "pil", 1e-5)
    with suppress(ConfigError):
        return verified(name, processor, "antialiased", 1e-4)  # torchvision's weights are float32
    deviation = min(getattr(processor, "image_std", None) or [1])
    return verified(name, processor, "torchvision", LEVELS / 255 / deviation)


def verified(
    name: str, processor: Any, library: str, atol: float
) -> tuple[tuple[Step, ...], Any, Any, tuple[int, ...]]:
    """Return the processor's steps, mean, deviation and output shape, verified on an image of noise.

    library: the first word of the steps' METHOD. atol: the largest difference of normalised values.
    """
    noise = np.random.default_rng(0).integers(256, size=(457, 631, 3), dtype=np.uint8)
    (frames,) = processor([noise], return_tensors="np").values()
    theirs = frames.reshape(-1, *frames.shape[-3:])[0]
    mean, std = processor.image_mean, processor.image_std
    if not processor.do_normalize:
        mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    for steps in _candidates(processor, library):
        pixels = picture(ArrayFrame(noise), steps)
        ours = ((pixels / 255 - np.array(mean)) / np.array(std)).transpose(2, 0, 1)
        if ours.shape == theirs.shape and np.allclose(ours, theirs, atol=atol):
            return steps, tuple(mean), tuple(std), theirs.shape
    raise ConfigError(f"the preprocessing of {name} is not supported: write it as a model by file")


def _candidates(processor: Any, library: str) -> Iterator[tuple[Step, ...]]:
    """Yield the preprocessing steps that the processor's settings allow."""
    kernel, size = KERNELS.get(processor.resample), processor.size
    if kernel is None or not processor.do_resize:
        return
    method = f"{library}_{kernel}"
    if size.height:
        scale: Step = ("exact", size.width, size.height, method)
    elif size.shortest_edge:
        scale = ("short_side", size.shortest_edge, method)
    else:
        return
    if processor.do_center_crop:
        yield scale, ("centre_crop", processor.crop_size.height, "floor")
        return
    yield (scale,)
    if crop_pct := getattr(processor, "crop_pct", None):
        edge = size.shortest_edge
        yield ("short_side", int(edge / crop_pct), method), ("centre_crop", edge, "floor")
        yield (("exact", edge, edge, method),)

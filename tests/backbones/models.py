"""Tiny models with random weights, saved as they stand on the hub, and the input of a network."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save_file

from stepline.backbones import named
from stepline.backbones.picture import picture
from stepline.media.frame import ArrayFrame
from stepline.spec import ClipSpec

SIZE = {"hidden_size": 32, "intermediate_size": 37, "num_hidden_layers": 2, "num_attention_heads": 4}
Hub = Callable[..., dict[str, Path]]
"""Saves a model and its processor as the hub's repository would hold them, and returns the files."""


def clip_of(photo: Image.Image, spec: ClipSpec) -> torch.Tensor:
    pixels = picture(ArrayFrame(np.asarray(photo)), spec.steps)
    normalised = (pixels / np.float32(255) - np.float32(spec.mean)) / np.float32(spec.std)
    return torch.from_numpy(np.ascontiguousarray(normalised.transpose(2, 0, 1), np.float32))[None, :, None]


def saved(name: str, **tensors: torch.Tensor) -> dict[str, Path]:
    """Save tensors as the one file of the model's weights; return the files."""
    weights = named.weights(name)
    (file,) = weights.files
    path = Path("weights", weights.name, file.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({key: value.contiguous().clone() for key, value in tensors.items()}, path)
    return {file.name: path}


def random_values(network: torch.nn.Module) -> torch.nn.Module:
    """Give every parameter and running mean a value that shows: some begin at zero."""
    torch.manual_seed(0)
    for name, value in network.state_dict().items():
        if value.is_floating_point():
            value.copy_(torch.rand_like(value) + 0.5 if "var" in name else torch.randn_like(value) * 0.1 + value)
    return network.eval()


def small_clip() -> Any:
    """Return a CLIP whose texts have at most 12 tokens."""
    from transformers import CLIPConfig, CLIPModel

    config = CLIPConfig(
        text_config={**SIZE, "vocab_size": 300, "max_position_embeddings": 12, "eos_token_id": 299},
        vision_config={**SIZE, "image_size": 48, "patch_size": 16},
        projection_dim=16,
    )
    return random_values(CLIPModel(config))


def clip_pictures(size: int = 48) -> Any:
    """Return the processor of its pictures."""
    from transformers import CLIPImageProcessor

    return CLIPImageProcessor(size={"shortest_edge": size}, crop_size=48)


def small_vit(classifier: bool = False) -> Any:
    """Return a vision transformer, with a pooler or with a classifier."""
    from transformers import ViTConfig, ViTForImageClassification, ViTModel

    config = ViTConfig(**SIZE, image_size=48, patch_size=16)
    return random_values(ViTForImageClassification(config) if classifier else ViTModel(config))


def vit_pictures() -> Any:
    """Return the processor of its pictures."""
    from transformers import ViTImageProcessor

    return ViTImageProcessor(size={"height": 48, "width": 48})


def prepared(photo: Image.Image, files: dict[str, Path], **options: Any) -> torch.Tensor:
    """Return the input that the processor in these files makes of the photo."""
    from transformers import AutoImageProcessor

    processor = AutoImageProcessor.from_pretrained(files["config.json"].parent, **options)
    pixels: torch.Tensor = processor(photo, return_tensors="pt")["pixel_values"]
    return pixels


def small_tokenizer() -> Any:
    """Return a tokenizer for it that knows two words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    words = {"<start>": 298, "<end>": 299, "an": 1, "astronaut": 2, "<unknown>": 0}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unknown>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<start> $A <end>", special_tokens=[("<start>", 298), ("<end>", 299)]
    )
    return tokenizer

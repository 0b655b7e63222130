"""TimeSformer trained on HowTo100M with distant supervision (Bertasius et al., 2021; Lin et al., 2022).

The network is from ``transformers``; the checkpoint is from facebookresearch/video-distant-supervision.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from stepline.backbones import checkpoint
from stepline.backbones.torchvision import make_importable
from stepline.errors import StoreError
from stepline.spec import ClipSpec

CHECKPOINT = "TimeSformer_divST_8x32_224_HowTo100M_pretrained.pth"
STEPS = 10_588
"""The number of wikiHow steps that the published network classifies: the rows of its classifier."""
NOT_FEATURES = ("head.*", "head2.*", "text_*")
"""Parameters that the features do not use: the classifiers, and the comparison of their steps with texts."""
PARTS = {
    "embeddings.cls_token": "cls_token",
    "embeddings.position_embeddings": "pos_embed",
    "embeddings.time_embeddings": "time_embed",
    "embeddings.patch_embeddings.projection": "patch_embed.proj",
    "layernorm": "norm",
    "temporal_layernorm": "temporal_norm1",
    "temporal_attention.attention.qkv": "temporal_attn.qkv",
    "temporal_attention.output.dense": "temporal_attn.proj",
    "temporal_dense": "temporal_fc",
    "layernorm_before": "norm1",
    "attention.attention.qkv": "attn.qkv",
    "attention.output.dense": "attn.proj",
    "layernorm_after": "norm2",
    "intermediate.dense": "mlp.fc1",
    "output.dense": "mlp.fc2",
}
"""Name in the library -> name in the checkpoint, for the parts of the network and of a block."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """The network's dimensions; the defaults are the published ones. image_size, frames: of its embedding tables."""

    image_size: int = 224
    patch_size: int = 16
    width: int = 768
    depth: int = 12
    heads: int = 12
    frames: int = 8


class Timesformer(torch.nn.Module):
    """The network; its output is the class token after the last norm, L2-normalised if ``normalise``.

    Its state dict uses the checkpoint's names instead of the library's.
    """

    def __init__(self, config: Config, *, normalise: bool = False) -> None:
        super().__init__()
        make_importable()
        from transformers import TimesformerConfig, TimesformerModel

        self.normalise = normalise
        self.model = TimesformerModel(
            TimesformerConfig(
                image_size=config.image_size,
                patch_size=config.patch_size,
                num_frames=config.frames,
                hidden_size=config.width,
                num_hidden_layers=config.depth,
                num_attention_heads=config.heads,
                intermediate_size=4 * config.width,
                layer_norm_eps=1e-6,
            )
        )
        names = {f"model.{name}": _published(name) for name in self.model.state_dict()}

        def publish(_: torch.nn.Module, state: checkpoint.Tensors, *__: Any) -> None:
            for ours, published in names.items():
                state[published] = state.pop(ours)

        def take(_: torch.nn.Module, state: checkpoint.Tensors, *__: Any) -> None:
            for ours, published in names.items():
                state[ours] = state.pop(published)

        self.register_state_dict_post_hook(publish)  # type: ignore[no-untyped-call]
        self.register_load_state_dict_pre_hook(take)  # type: ignore[no-untyped-call]

    def tokens(self, clips: torch.Tensor) -> torch.Tensor:
        """Return the (B, 1 + patches, D) tokens of (B, 3, T, H, W) clips: the class token, then all patches.

        If T, H or W differs from the temporal or spatial embedding, the embedding is resized by nearest neighbour.
        """
        # The library's layers take the size of a clip from the configuration instead of the clip.
        self.model.config.num_frames, self.model.config.image_size = clips.shape[2], clips.shape[4]
        tokens: torch.Tensor = self.model(clips.transpose(1, 2)).last_hidden_state
        return tokens

    def forward(self, clips: torch.Tensor) -> torch.Tensor:
        """Return the (B, D) features of (B, 3, T, H, W) clips."""
        feature = self.tokens(clips)[:, 0]
        return torch.nn.functional.normalize(feature, dim=1) if self.normalise else feature


def _published(name: str) -> str:
    """Return the checkpoint's name for a parameter of the library."""
    name = name.replace("encoder.layer.", "blocks.")
    part = re.sub(r"^blocks\.\d+\.|\.(weight|bias)$", "", name)
    return name.replace(part, PARTS[part])


def fill(network: Timesformer, tensors: checkpoint.Tensors, path: Path) -> None:
    """Load the tensors of the checkpoint into the network; raise StoreError if they do not fit it."""
    checkpoint.load(network, tensors, model="TimeSformer", path=path, ignore=NOT_FEATURES)


def load(spec: ClipSpec, files: Mapping[str, Path]) -> Timesformer:
    """Return the network with the published weights.

    Raises StoreError if the file contains another network, such as the TimeSformer trained to classify tasks.
    """
    path = files[CHECKPOINT]
    held = checkpoint.state(path, inside=("state_dict", "model_state", "model"))
    network = Timesformer(Config(), normalise=spec.normalise)
    tensors, _ = checkpoint.unwrapped(held, network, model="TimeSformer", path=path)
    fill(network, tensors, path)
    classes = len(tensors["head.weight"]) if "head.weight" in tensors else STEPS
    if classes != STEPS:
        raise StoreError(
            f"{path} is a TimeSformer with {classes} classes, not the {STEPS} steps of distant supervision "
            f"(TimeSformer_divST_8x32_224_HowTo100M.pyth, for instance, was trained on tasks): put {CHECKPOINT} there, "
            "from https://github.com/facebookresearch/video-distant-supervision"
        )
    return network.eval()

"""InternVideo MM-L-14 (Wang et al., 2022): CLIP's ViT-L/14 on each frame, and attention from one token to all frames.

Parameters are named as in the published checkpoints of OpenGVLab/InternVideo, without ``clip.``.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

from stepline.backbones import checkpoint, clip_text
from stepline.errors import StoreError
from stepline.spec import ClipSpec, TextSpec

TEXT = ("token_embedding.*", "positional_embedding", "transformer.*", "ln_final.*", "text_projection")
"""Parameter names of the text tower."""
VIDEO = ("visual.*", "visual_ln_post.*", "visual_proj")
"""Parameter names of the video tower."""
UNUSED = ("logit_scale", "text_mask_embedding")


@dataclass(frozen=True, kw_only=True)
class Config:
    """The dimensions. extractors: the blocks after which the video token attends to all frames."""

    dimension: int = 768
    width: int = 1024
    heads: int = 16
    layers: int = 24
    image: int = 224
    patch: int = 14
    extractors: tuple[int, ...] = (20, 21, 22, 23)
    text: clip_text.Config = field(default_factory=lambda: clip_text.Config(dimension=768, quick_gelu=True))


class QuickGELU(nn.Module):
    """OpenAI's approximation of GELU."""

    def forward(self, x: Tensor) -> Tensor:
        """Return x sigmoid(1.702 x)."""
        return x * torch.sigmoid(1.702 * x)


class Block(nn.Module):
    """A pre-norm transformer layer. keys: it attends to other tokens than its own."""

    def __init__(self, width: int, heads: int, *, keys: bool = False) -> None:
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)
        self.ln_1 = nn.LayerNorm(width)
        layers = {"c_fc": nn.Linear(width, 4 * width), "gelu": QuickGELU(), "c_proj": nn.Linear(4 * width, width)}
        self.mlp = nn.Sequential(OrderedDict(layers))
        self.ln_2 = nn.LayerNorm(width)
        if keys:
            self.ln_3 = nn.LayerNorm(width)

    def forward(self, x: Tensor, tokens: Tensor | None = None) -> Tensor:
        """Return the (B, N, width) tokens after attention to ``tokens``, (B, M, width), or to each other."""
        query = self.ln_1(x)
        key = query if tokens is None else self.ln_3(tokens)
        x = x + self.attn(query, key, key, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))  # type: ignore[no-any-return]


class Transformer(nn.Module):
    """The ViT blocks, applied to each frame, with extractors after some of them."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.width
        self.extractors = config.extractors
        self.resblocks = nn.ModuleList(Block(width, config.heads) for _ in range(config.layers))
        self.temporal_cls_token = nn.Parameter(torch.empty(1, 1, width))
        self.dpe = nn.ModuleList(nn.Conv3d(width, width, 3, padding=1, groups=width) for _ in config.extractors)
        self.dec = nn.ModuleList(Block(width, config.heads, keys=True) for _ in config.extractors)
        self.balance = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor, grid: tuple[int, int, int, int]) -> Tensor:
        """Return the (B, width) vectors of (B T, 1 + h w, width) tokens; grid: B, T, h, w."""
        batch, frames, height, width = grid
        video = self.temporal_cls_token.expand(batch, -1, -1)
        for number, block in enumerate(self.resblocks):
            x = block(x)
            if number in self.extractors:
                level = self.extractors.index(number)
                patches = x[:, 1:].reshape(batch, frames, height, width, -1).permute(0, 4, 1, 2, 3)
                position = self.dpe[level](patches).permute(0, 2, 3, 4, 1).flatten(2, 3).flatten(0, 1)
                tokens = torch.cat([x[:, :1], x[:, 1:] + position], dim=1)
                video = self.dec[level](video, tokens.reshape(batch, -1, tokens.shape[-1]))
        share = torch.sigmoid(self.balance)
        return (1 - share) * video[:, 0] + share * x[:, 0].reshape(batch, frames, -1).mean(1)


class Visual(nn.Module):
    """Patch embedding, positional embedding and transformer."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        kernel = (1, config.patch, config.patch)
        self.conv1 = nn.Conv3d(3, config.width, kernel, stride=kernel, bias=False)
        self.class_embedding = nn.Parameter(torch.empty(config.width))
        self.positional_embedding = nn.Parameter(torch.empty(1 + (config.image // config.patch) ** 2, config.width))
        self.ln_pre = nn.LayerNorm(config.width)
        self.transformer = Transformer(config)

    def forward(self, clips: Tensor) -> Tensor:
        """Return the (B, width) vectors of (B, 3, T, H, W) clips."""
        patches = self.conv1(clips)
        batch, _, frames, height, width = patches.shape
        x = patches.permute(0, 2, 3, 4, 1).flatten(2, 3).flatten(0, 1)
        x = torch.cat([self.class_embedding.expand(len(x), 1, -1), x], dim=1) + self.positional_embedding
        vectors: Tensor = self.transformer(self.ln_pre(x), (batch, frames, height, width))
        return vectors


class VideoTower(nn.Module):
    """The video tower, uninitialised until ``checkpoint.load``."""

    def __init__(self, config: Config, *, normalise: bool = False) -> None:
        super().__init__()
        self.normalise = normalise
        with torch.device("meta"):
            self.visual = Visual(config)
            self.visual_ln_post = nn.LayerNorm(config.width)
            self.visual_proj = nn.Parameter(torch.empty(config.width, config.dimension))
        self.to_empty(device="cpu")

    def forward(self, clips: Tensor) -> Tensor:
        """Return the (B, D) vectors of normalised (B, 3, T, H, W) clips, for any T."""
        x: Tensor = self.visual_ln_post(self.visual(clips)) @ self.visual_proj
        return functional.normalize(x, dim=1) if self.normalise else x


def load(spec: ClipSpec, files: Mapping[str, Path]) -> VideoTower:
    """Return the network of ``spec`` with the published weights; raises the errors of ``checkpoint``."""
    (path,) = files.values()
    network = VideoTower(Config(), normalise=spec.normalise)
    fill(network, state(path), path)
    return network


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> clip_text.CausalTextEncoder:
    """Return the text tower with the published weights and its tokenizer; raises the errors of ``checkpoint``."""
    return clip_text.CausalTextEncoder(spec, load_text_tower(files))


def load_text_tower(files: Mapping[str, Path]) -> nn.Module:
    """Return the text tower with the published weights, (B, 77) token ids -> (B, D), not normalised."""
    (path,) = files.values()
    tower = clip_text.tower(Config().text)
    fill(tower, state(path), path)
    return tower


@dataclass(frozen=True)
class Towers:
    """Both towers for training. logit_scale: the logarithm of the factor on the cosines."""

    video: VideoTower
    text: nn.Module
    logit_scale: nn.Parameter

    def parameters(self, *, video: bool, text: bool, scale: bool) -> dict[str, nn.Parameter]:
        """Return the selected parameters by their names in the published checkpoints."""
        towers = [self.video] * video + [self.text] * text
        found = {f"clip.{name}": value for tower in towers for name, value in tower.named_parameters()}
        return found | ({"clip.logit_scale": self.logit_scale} if scale else {})


def trainable(files: Mapping[str, Path], device: torch.device) -> Towers:
    """Return both towers with the published weights for training on a device; raises the errors of ``checkpoint``.

    ``load`` and ``load_text`` can read a safetensors file of their parameters.
    """
    (path,) = files.values()
    tensors = state(path)
    video, text = VideoTower(Config()), clip_text.tower(Config().text)
    for tower in (video, text):
        fill(tower, tensors, path)
        tower.requires_grad_(True).to(device)
    if "logit_scale" not in tensors:
        raise StoreError(f"{path} has no logit_scale: get the published file")
    return Towers(video, text, nn.Parameter(tensors["logit_scale"].float().to(device)))


def state(path: Path) -> checkpoint.Tensors:
    """Return the tensors of a checkpoint. The pre-trained checkpoint has them under ``state_dict``."""
    return checkpoint.state(path, inside=("state_dict",), prefix="clip.")


def fill(network: nn.Module, tensors: checkpoint.Tensors, path: Path) -> None:
    """Load the tower's tensors from ``tensors`` and prepare it for inference."""
    other = TEXT if isinstance(network, VideoTower) else VIDEO
    checkpoint.load(network, tensors, model="internvideo", path=path, ignore=(*other, *UNUSED))
    network.eval().requires_grad_(False)

"""EgoVLP (Lin et al., 2022): the video transformer of Frozen in Time (Bain et al., 2021), with DistilBERT for texts.

Parameters are named as in both published checkpoints, showlab/EgoVLP and m-bain/frozen-in-time.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from stepline.backbones import checkpoint
from stepline.backbones.torchvision import make_importable
from stepline.errors import StoreError
from stepline.spec import ClipSpec, TextSpec

TOKENIZER = "tokenizer.json"
TABLE = "video_model.temporal_embed"


@dataclass(frozen=True, kw_only=True)
class Config:
    """The dimensions of both towers; the defaults are the published ones. frames: length of the temporal embedding."""

    image_size: int = 224
    patch_size: int = 16
    frames: int = 16
    width: int = 768
    depth: int = 12
    heads: int = 12
    text_width: int = 768
    text_hidden: int = 3072
    text_depth: int = 6
    text_heads: int = 12
    vocabulary: int = 30_522
    positions: int = 512
    dimension: int = 256


class Attention(nn.Module):
    """Each patch attends to the class token and to the patches of its frame or position; the class token to all."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x: Tensor, frames: int, *, over_time: bool) -> Tensor:
        """Return the attention output of (B, 1 + frames x places, D) tokens: the class token, then frame by frame."""
        batch, length, width = x.shape
        query, key, value = self.qkv(x).reshape(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        first = functional.scaled_dot_product_attention(query[:, :, :1], key, value)

        def grouped(part: Tensor) -> Tensor:
            """Return the patches as (B x groups, heads, patches per group, d)."""
            patches = part[:, :, 1:].reshape(batch, self.heads, frames, -1, width // self.heads)
            return (patches.transpose(2, 3) if over_time else patches).transpose(1, 2).flatten(0, 1)

        def with_first(part: Tensor) -> Tensor:
            patches = grouped(part)
            return torch.cat((part[:, :, :1].repeat_interleave(len(patches) // batch, dim=0), patches), dim=2)

        rest = functional.scaled_dot_product_attention(grouped(query), with_first(key), with_first(value))
        rest = rest.reshape(batch, -1, *rest.shape[1:]).transpose(1, 2)
        patches = (rest.transpose(2, 3) if over_time else rest).flatten(2, 3)
        attended: Tensor = self.proj(torch.cat((first, patches), dim=2).transpose(1, 2).flatten(2))
        return attended


class Block(nn.Module):
    """Attention over time, then over space, added to the input of the block; then an MLP."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, eps=1e-6)
        self.attn = Attention(width, heads)
        self.timeattn = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width, eps=1e-6)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(width, 4 * width), "fc2": nn.Linear(4 * width, width)})
        self.norm3 = nn.LayerNorm(width, eps=1e-6)

    def forward(self, x: Tensor, frames: int) -> Tensor:
        """Return the output tokens for ``x``, with the same shape."""
        seen = x + self.timeattn(self.norm3(x), frames, over_time=True)
        x = x + self.attn(self.norm1(seen), frames, over_time=False)
        added: Tensor = self.mlp["fc2"](functional.gelu(self.mlp["fc1"](self.norm2(x))))
        return x + added


class SpaceTimeTransformer(nn.Module):
    """The video transformer: (B, 3, T, H, W) clips, T up to the embedding's length -> (B, width), the class token."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        width, size = config.width, config.patch_size
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(3, width, size, size)})
        self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + (config.image_size // size) ** 2, width))
        self.temporal_embed = nn.Parameter(torch.zeros(1, config.frames, width))
        self.blocks = nn.ModuleList(Block(width, config.heads) for _ in range(config.depth))
        self.norm = nn.LayerNorm(width, eps=1e-6)

    def forward(self, clips: Tensor) -> Tensor:
        """Return the (B, width) features of the clips."""
        frames = clips.shape[2]
        patches = self.patch_embed["proj"](clips.transpose(1, 2).flatten(0, 1)).flatten(2).transpose(1, 2)
        patches = patches.unflatten(0, (len(clips), frames))
        patches = patches + (self.pos_embed[:, None, 1:] + self.temporal_embed[:, :frames, None])
        first = (self.cls_token + self.pos_embed[:, :1]).expand(len(clips), -1, -1)
        x = torch.cat((first, patches.flatten(1, 2)), dim=1)
        for block in self.blocks:
            x = block(x, frames)
        feature: Tensor = self.norm(x)[:, 0]
        return feature


class VideoTower(nn.Module):
    """The video transformer with its projection: (B, 3, T, H, W) -> (B, dimension), L2-normalised if ``normalise``."""

    def __init__(self, config: Config, *, normalise: bool = False) -> None:
        super().__init__()
        self.normalise = normalise
        self.video_model = SpaceTimeTransformer(config)
        self.vid_proj = nn.Sequential(nn.Linear(config.width, config.dimension))

    def forward(self, clips: Tensor) -> Tensor:
        """Return the embeddings of the clips."""
        embedding: Tensor = self.vid_proj(self.video_model(clips))
        return functional.normalize(embedding, dim=1) if self.normalise else embedding


class TextTower(nn.Module):
    """DistilBERT with its projection: (B, L) token ids without padding -> (B, dimension), as in ``VideoTower``."""

    def __init__(self, config: Config, *, normalise: bool = False) -> None:
        super().__init__()
        make_importable()
        from transformers import DistilBertConfig, DistilBertModel

        self.normalise = normalise
        self.text_model = DistilBertModel(
            DistilBertConfig(
                vocab_size=config.vocabulary,
                max_position_embeddings=config.positions,
                n_layers=config.text_depth,
                n_heads=config.text_heads,
                dim=config.text_width,
                hidden_dim=config.text_hidden,
            )
        )
        self.txt_proj = nn.Sequential(nn.ReLU(), nn.Linear(config.text_width, config.dimension))

    def forward(self, tokens: Tensor) -> Tensor:
        """Return the embeddings of the texts, from the last hidden state of the first token."""
        embedding: Tensor = self.txt_proj(self.text_model(input_ids=tokens).last_hidden_state[:, 0])
        return functional.normalize(embedding, dim=1) if self.normalise else embedding


NOT_OF = {
    VideoTower: ("text_model.*", "txt_proj.*"),
    TextTower: ("video_model.*", "vid_proj.*", "text_model.embeddings.position_ids"),
}
"""The parameters of the checkpoint that a tower does not use."""


def fill(tower: VideoTower | TextTower, tensors: checkpoint.Tensors, path: Path) -> None:
    """Load the tensors of the checkpoint into a tower; raise StoreError if they are not EgoVLP's."""
    checkpoint.load(tower, tensors, model="EgoVLP", path=path, ignore=NOT_OF[type(tower)])


def resized(tensors: checkpoint.Tensors, frames: int) -> checkpoint.Tensors:
    """Return the tensors with a temporal embedding of ``frames`` rows, truncated or padded with zeros.

    Source: ``_inflate_positional_embeds`` in showlab/EgoVLP's model/model.py.
    """
    if TABLE not in tensors:
        return tensors
    table = tensors[TABLE]
    return tensors | {TABLE: functional.pad(table, (0, 0, 0, frames - table.shape[1]))}


def _checkpoint(files: Mapping[str, Path]) -> Path:
    (path,) = (path for name, path in files.items() if name != TOKENIZER)
    return path


def _tensors(path: Path) -> checkpoint.Tensors:
    held = checkpoint.state(path, inside=("state_dict",))
    return {name.removeprefix("module."): tensor for name, tensor in held.items()}


def load(spec: ClipSpec, files: Mapping[str, Path]) -> VideoTower:
    """Return the video tower with the published weights; raise StoreError if the file contains another network."""
    path = _checkpoint(files)
    tower = VideoTower(replace(Config(), frames=spec.num_frames), normalise=spec.normalise)
    fill(tower, resized(_tensors(path), spec.num_frames), path)
    return tower.eval()


class TextEncoder:
    """The text tower with DistilBERT's tokenizer. Each text is encoded alone and unpadded."""

    def __init__(self, spec: TextSpec, tower: TextTower, tokenizer: Path) -> None:
        """Read the ``tokenizer``, a tokenizer.json; raise StoreError if its vocabulary does not fit the network."""
        from tokenizers import Tokenizer

        self.spec = spec
        self._tower = tower
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        known, found = tower.text_model.config.vocab_size, self._tokenizer.get_vocab_size()
        if found != known:
            raise StoreError(
                f"{tokenizer} has {found} tokens, the network {known}: put DistilBERT's there, the tokenizer.json of "
                "https://huggingface.co/distilbert/distilbert-base-uncased"
            )
        self._tokenizer.enable_truncation(max_length=spec.max_tokens)
        self._tokenizer.no_padding()

    def tokens(self, text: str) -> list[int]:
        """Return the ids of ``[CLS]``, the text's word pieces, and ``[SEP]``."""
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids

    def encode(self, tokens: list[int]) -> NDArray[np.float32]:
        """Return the (D,) embedding of one text's tokens."""
        with torch.inference_mode():
            vector: NDArray[np.float32] = self._tower(torch.tensor([tokens]))[0].numpy()
        return vector


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> TextEncoder:
    """Return the text tower with the published weights; raise StoreError if a file contains something else."""
    tower, path = TextTower(Config(), normalise=spec.normalise), _checkpoint(files)
    fill(tower, _tensors(path), path)
    return TextEncoder(spec, tower.eval(), files[TOKENIZER])

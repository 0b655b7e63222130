"""VideoCLIP (Xu et al., 2021), fairseq's MMPT: two BERTs, one on S3D vectors of seconds and one on words.

Parameters are named as in the published checkpoint of MMFusionSeparate, without ``mmmodel.``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from stepline.backbones import checkpoint, s3d
from stepline.backbones.torchvision import make_importable
from stepline.errors import StoreError
from stepline.spec import ClipSpec, TextSpec

make_importable()

from transformers import BertConfig, BertModel  # noqa: E402

SECOND = 30
"""Frames per token of S3D."""
CLS, SEP = 101, 102
NOT_LOADED = ("*.position_ids", "*.pooler.*")
"""Names in the checkpoint that no output depends on."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """The dimensions; the defaults are the published ones. seconds: the maximum length of a clip."""

    width: int = 768
    heads: int = 12
    intermediate: int = 3072
    vocabulary: int = 30_522
    text_layers: int = 12
    video_layers: int = 6
    seconds: int = 32

    def bert(self, layers: int) -> BertModel:
        """Return a BERT with this number of layers."""
        config = BertConfig(
            vocab_size=self.vocabulary,
            hidden_size=self.width,
            num_hidden_layers=layers,
            num_attention_heads=self.heads,
            intermediate_size=self.intermediate,
        )
        return BertModel(config, add_pooling_layer=False)


class Projection(nn.Module):
    """From S3D's 512 values to the width of BERT."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear1 = nn.Linear(512, width)
        self.LayerNorm = nn.LayerNorm(width)
        self.linear2 = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map (..., 512) to (..., width)."""
        projected: Tensor = self.linear2(self.LayerNorm(functional.gelu(self.linear1(x))))
        return projected


class VideoTower(nn.Module):
    """A BERT on [CLS], one token per second of the clip, and [SEP], which is always at the last position."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.last = config.seconds + 1
        self.videomlp = Projection(config.width)
        self.bert = config.bert(config.video_layers)

    def forward(self, tokens: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the last layer, (B, T + 2, D), and its mean over seconds and [SEP], (B, D).

        tokens: (B, T, 512), T at most 32, each of unit norm. mask: (B, T), False for padding.
        """
        batch, count, _ = tokens.shape
        ends = self.bert.embeddings.word_embeddings(torch.tensor([[CLS], [SEP]], device=tokens.device))
        first, last = (end.expand(batch, 1, -1) for end in ends)
        one = torch.ones(batch, 1, dtype=torch.bool, device=tokens.device)
        positions = torch.tensor([[*range(count + 1), self.last]], device=tokens.device)
        hidden: Tensor = self.bert(
            inputs_embeds=torch.cat([first, self.videomlp(tokens), last], dim=1),
            position_ids=positions,
            attention_mask=torch.cat([one, mask, one], dim=1).long(),
        ).last_hidden_state
        counted = torch.cat([~one, mask, one], dim=1)[:, :, None]
        return hidden, (hidden * counted).sum(1) / counted.sum(1)


class Towers(nn.Module):
    """Both towers, as in the checkpoint."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.video_encoder = VideoTower(config)
        self.text_encoder = config.bert(config.text_layers)
        self.eval().requires_grad_(False)


class VideoClip(nn.Module):
    """The network on clips. half: round S3D's vectors to float16 between the two networks, as MMPT stores them."""

    def __init__(self, vectors: nn.Module, tower: VideoTower, *, half: bool) -> None:
        super().__init__()
        self.vectors = vectors
        self.tower = tower
        self.half_precision = half

    def forward(self, clips: Tensor) -> Tensor:
        """Return the (B, D) vectors, not normalised, of (B, 3, 30 T, H, W) clips: RGB in [0, 1], 30 frames a token."""
        batch, colours, _, height, width = clips.shape
        seconds = clips.reshape(batch, colours, -1, SECOND, height, width).transpose(1, 2).flatten(0, 1)
        vectors = self.vectors(seconds)
        if self.half_precision:
            vectors = vectors.half().to(vectors.dtype)
        tokens = vectors.reshape(batch, -1, vectors.shape[1])
        pooled: Tensor = self.tower(tokens, torch.ones_like(tokens[:, :, 0], dtype=torch.bool))[1]
        return pooled


def load(spec: ClipSpec, files: Mapping[str, Path]) -> VideoClip:
    """Return the network of ``spec`` with the published weights; raises the errors of ``checkpoint``.

    output: ``pooled_video`` (768), or ``pooled_video_of_float16`` if S3D's vectors are rounded.
    """
    vectors = s3d.load(replace(spec, output="video_embedding", normalise=True), files)
    half = spec.output == "pooled_video_of_float16"
    return VideoClip(vectors, _loaded(files).video_encoder, half=half).eval()


def _loaded(files: Mapping[str, Path]) -> Towers:
    path = files["checkpoint_best.pt"]
    tensors = checkpoint.state(path, inside=("model", "state_dict"), prefix="mmmodel.")
    towers = Towers(Config())
    checkpoint.load(towers, tensors, model="videoclip", path=path, ignore=NOT_LOADED)
    return towers


class TextEncoder:
    """The text tower with the tokenizer of bert-base-uncased."""

    def __init__(self, spec: TextSpec, tower: BertModel, tokenizer: Path) -> None:
        """Read the tokenizer; raise StoreError if it belongs to another model."""
        self.spec = spec
        self._tower = tower
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(max_length=spec.max_tokens)
        self._tokenizer.no_padding()
        if self.tokens("A") != [CLS, 1037, SEP]:
            raise StoreError(f"{tokenizer} is not the tokenizer of bert-base-uncased: get its tokenizer.json")

    def tokens(self, text: str) -> list[int]:
        """Return the ids of [CLS], at most 61 word pieces and [SEP]."""
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids

    def encode(self, tokens: list[int]) -> NDArray[np.float32]:
        """Return the (D,) embedding of one text's tokens: the mean over all tokens except [CLS], not normalised."""
        return embed(self._tower, tokens)


def embed(tower: BertModel, tokens: list[int]) -> NDArray[np.float32]:
    """Return the (D,) mean of the last layer over all tokens except the first."""
    with torch.inference_mode():
        hidden: Tensor = tower(input_ids=torch.tensor([tokens])).last_hidden_state[0]
        vector: NDArray[np.float32] = hidden[1:].mean(dim=0).numpy()
    return vector


def load_text(spec: TextSpec, files: Mapping[str, Path]) -> TextEncoder:
    """Return the text tower with the published weights; raises the errors of ``checkpoint``."""
    return TextEncoder(spec, _loaded(files).text_encoder, files["tokenizer.json"])

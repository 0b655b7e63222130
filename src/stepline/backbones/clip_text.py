"""CLIP's text tower as in open_clip, and its byte pair encoding. Parameters are named as in the checkpoints."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from stepline.backbones.torchvision import make_importable
from stepline.spec import TextSpec


@dataclass(frozen=True, kw_only=True)
class Config:
    """The dimensions of a tower for 77 tokens. quick_gelu: use OpenAI's approximation instead of the exact GELU."""

    dimension: int
    width: int = 768
    heads: int = 12
    layers: int = 12
    quick_gelu: bool


def tower(config: Config) -> nn.Module:
    """Return the tower, (B, 77) token ids -> (B, dimension), uninitialised until ``checkpoint.load``."""
    make_importable()
    from open_clip.transformer import QuickGELU, TextTransformer

    with torch.device("meta"):
        network: nn.Module = TextTransformer(
            width=config.width,
            heads=config.heads,
            layers=config.layers,
            output_dim=config.dimension,
            act_layer=QuickGELU if config.quick_gelu else nn.GELU,
        )
    network = network.to_empty(device="cpu")
    network.get_buffer("attn_mask").copy_(torch.full((77, 77), float("-inf")).triu(1))
    return network


def tokenize(text: str) -> list[int]:
    """Return the 77 token ids of the lower-cased ``text``: start, at most 75 pieces, end, zeros."""
    make_importable()
    from open_clip import tokenizer

    ids: list[int] = tokenizer.tokenize(text)[0].tolist()
    return ids


class TextEncoder:
    """A text tower with its tokenizer. It encodes one text at a time."""

    def __init__(self, spec: TextSpec, tokens: Callable[[str], list[int]], tower: Callable[[Tensor], Tensor]) -> None:
        """tokens: returns the token ids of a text. tower: (1, ids) -> (1, D)."""
        self.spec = spec
        self.tokens = tokens
        self._tower = tower

    def encode(self, tokens: list[int]) -> NDArray[np.float32]:
        """Return the (D,) embedding of one text's tokens."""
        return self._run(self._tower, tokens)

    def _run(self, tower: Callable[[Tensor], Tensor], tokens: list[int]) -> NDArray[np.float32]:
        with torch.inference_mode():
            vector = tower(torch.tensor([tokens]))[0]
            if self.spec.normalise:
                vector = nn.functional.normalize(vector, dim=0)
        array: NDArray[np.float32] = vector.numpy()
        return array


class CausalTextEncoder(TextEncoder):
    """A ``tower`` with its tokenizer. Attention is causal, and the embedding is the output at the end token."""

    def __init__(self, spec: TextSpec, network: nn.Module) -> None:
        super().__init__(spec, tokenize, network)
        self.network: Any = network

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the (D,) embedding of a query, faster than ``encode`` and equal to it up to rounding."""
        tokens = self.tokens(text)
        return self._run(self._unpadded, tokens[: tokens.index(max(tokens)) + 1])

    def _unpadded(self, tokens: Tensor) -> Tensor:
        network, length = self.network, tokens.shape[1]
        x = network.token_embedding(tokens) + network.positional_embedding[:length]
        x = network.transformer(x, attn_mask=network.attn_mask[:length, :length])
        end: Tensor = network.ln_final(x[:, -1]) @ network.text_projection
        return end

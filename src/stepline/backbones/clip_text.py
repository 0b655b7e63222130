"""CLIP's text tower, as open_clip builds it, and its byte pair encoding. Its names are those of the checkpoints."""

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
    """The dimensions of a tower for 77 tokens. quick_gelu: OpenAI's approximation instead of the exact GELU."""

    dimension: int
    width: int = 768
    heads: int = 12
    layers: int = 12
    quick_gelu: bool


def tower(config: Config) -> nn.Module:
    """Return the tower, its values undefined until ``checkpoint.load``: (B, 77) token ids -> (B, dimension)."""
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
    """Return the 77 token ids of ``text``, lower-cased: start, at most 75 pieces, end, zeros."""
    make_importable()
    from open_clip import tokenizer

    ids: list[int] = tokenizer.tokenize(text)[0].tolist()
    return ids


class TextEncoder:
    """A text tower with its tokenizer; it sees one text at a time."""

    def __init__(self, spec: TextSpec, tokens: Callable[[str], list[int]], tower: Callable[[Tensor], Tensor]) -> None:
        """tokens: the ids that the tower sees of a text. tower: (1, ids) -> (1, D)."""
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
    """A ``tower`` with its tokenizer. Tokens see those before them alone, and a vector is that of the end token."""

    def __init__(self, spec: TextSpec, network: nn.Module) -> None:
        super().__init__(spec, tokenize, network)
        self.network: Any = network

    def query(self, text: str) -> NDArray[np.float32]:
        """Return the (D,) embedding of a text that nobody keeps, up to rounding that of ``encode``, in less time."""
        tokens = self.tokens(text)
        return self._run(self._unpadded, tokens[: tokens.index(max(tokens)) + 1])

    def _unpadded(self, tokens: Tensor) -> Tensor:
        network, length = self.network, tokens.shape[1]
        x = network.token_embedding(tokens) + network.positional_embedding[:length]
        x = network.transformer(x, attn_mask=network.attn_mask[:length, :length])
        end: Tensor = network.ln_final(x[:, -1]) @ network.text_projection
        return end

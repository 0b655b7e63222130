"""Hugging Face transformers that score texts: loaded from ``weights``, run on one thread, without padding."""

import os
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import groupby
from typing import TYPE_CHECKING, Any

from stepline.backbones import checkpoint
from stepline.backbones.torchvision import make_importable
from stepline.backbones.weights import locate, weights_of
from stepline.needs import Need
from stepline.pipeline.fill import require

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_BATCH = 64


def missing(weights: str) -> tuple[Need, ...]:
    """Return which of torch, transformers and the weights are missing."""
    packages = tuple(Need("package", name) for name in ("torch", "transformers") if find_spec(name) is None)
    return packages if locate(weights) is not None else (*packages, Need("weights", weights))


def load(
    weights: str, network: str, *, prefix: str = "", ignore: Sequence[str] = (), config: dict[str, Any], **built: Any
) -> "tuple[Tokenizer, Any]":
    """Return the tokenizer and the network without contacting the Hugging Face hub.

    network: the name of an Auto class of transformers. prefix, ignore: of tensor names in the checkpoint, see
    ``checkpoint.state`` and ``checkpoint.load``. config: overrides of the file's configuration. built: arguments of
    ``from_config``. Raises MissingError if a package or the weights are absent, StoreError if the weights do not fit
    the network.
    """
    require(weights, missing(weights))
    files = locate(weights)
    assert files is not None
    os.environ["HF_HUB_OFFLINE"] = "1"
    import torch

    make_importable()
    import transformers
    from tokenizers import Tokenizer

    torch.set_num_threads(1)
    path = files["model.safetensors"]
    made = transformers.AutoConfig.from_pretrained(path.parent, local_files_only=True, **config)
    model = getattr(transformers, network).from_config(made, dtype=torch.float32, **built)
    tensors = checkpoint.state(path, prefix=prefix)
    checkpoint.load(model, tensors, model=weights_of(weights).origin, path=path, ignore=ignore)
    tokenizer = Tokenizer.from_file(str(files["tokenizer.json"]))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer, model.eval()


def batches(tokens: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Yield batches of at most 64 indices of texts with equal numbers of tokens, so that no text is padded."""

    def length(index: int) -> int:
        return len(tokens[index])

    for _, group in groupby(sorted(range(len(tokens)), key=length), key=length):
        indices = list(group)
        for start in range(0, len(indices), _BATCH):
            yield indices[start : start + _BATCH]

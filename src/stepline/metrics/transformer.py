"""Transformers of Hugging Face that score texts: from files of ``weights``, on one thread, without padding."""

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
    """Return what a transformer is missing of torch, transformers and its weights."""
    packages = tuple(Need("package", name) for name in ("torch", "transformers") if find_spec(name) is None)
    return packages if locate(weights) is not None else (*packages, Need("weights", weights))


def load(
    weights: str, network: str, *, prefix: str = "", ignore: Sequence[str] = (), config: dict[str, Any], **built: Any
) -> "tuple[Tokenizer, Any]":
    """Return the tokenizer and the network, one of transformers' Auto classes; nothing is asked of the hub.

    prefix, ignore: of the checkpoint's names, see ``checkpoint.state`` and ``checkpoint.load``. config: keys of the
    configuration that are other than the file's. built: how the class makes the network. Raises MissingError where a
    package or the weights are absent, StoreError where they are not the network's.
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
    """Yield the indices of texts of as many tokens each, at most 64 at once: so none is padded."""

    def length(index: int) -> int:
        return len(tokens[index])

    for _, group in groupby(sorted(range(len(tokens)), key=length), key=length):
        indices = list(group)
        for start in range(0, len(indices), _BATCH):
            yield indices[start : start + _BATCH]

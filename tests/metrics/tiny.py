"""Transformers that hold next to nothing, at ``weights/`` of the working folder, of weights that a formula makes."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from stepline.backbones.torchvision import make_importable

SPECIAL = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
MERGES = (("Ġ", "a"), ("d", "d"), ("Ġa", "dd"), ("Ġ", "m"), ("i", "x"), ("Ġm", "ix"), ("m", "ix"))
VOCABULARY = (*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet()), *("".join(pair) for pair in MERGES))
CONFIG = {
    "hidden_size": 8,
    "num_attention_heads": 2,
    "intermediate_size": 16,
    "num_hidden_layers": 18,
    "vocab_size": len(VOCABULARY),
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}


def make(name: str, network: str, config: dict[str, Any], *, layers: float) -> Path:
    """Write the three files of the weights ``name``, a network of transformers, and return their folder.

    layers: how large the layers' numbers are; with little, tokens stay as far apart as their embeddings.
    """
    make_importable()
    import transformers

    folder = Path("weights", name)
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | config))
    made = getattr(transformers, network).from_config(transformers.AutoConfig.from_pretrained(folder))
    save_file(dict(_filled(made.state_dict().items(), layers)), folder / "model.safetensors")
    tokenizer = Tokenizer(models.BPE(vocab={each: i for i, each in enumerate(VOCABULARY)}, merges=list(MERGES)))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def _filled(tensors: Iterable[tuple[str, Any]], layers: float) -> Iterable[tuple[str, Any]]:
    drawn = np.random.default_rng(0)
    for name, tensor in sorted(tensors):
        near, spread = float(name.endswith("LayerNorm.weight")), layers if "layer" in name else 1
        yield name, (near + spread * drawn.standard_normal(tuple(tensor.shape))).astype(np.float32)

"""VideoCLIP against fairseq's MMFusionSeparate, with S3D's vectors as input."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stepline.backbones import checkpoint
from stepline.backbones.presets.videoclip import TOWERS
from stepline.backbones.registry import files_of
from stepline.backbones.videoclip import NOT_LOADED, Config, Towers, embed, load_text
from tests.parity import Golden, Output, emptied, text_anchor, weights


def outputs(manifest: Any, golden: Golden, folder: Path) -> Iterator[Output]:
    """Yield the last layer and the vector of each clip, and the vectors of texts, from the stored tokens."""
    for name, described in manifest["configs"].items():
        held = [key for key in golden if key.startswith(f"{name}/")]
        if not held:
            continue
        towers = emptied(Towers(_config(described["bert_config"])))
        arrays = weights(described["keys"], described["digest_sha256"])
        tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
        checkpoint.load(towers, tensors, model="videoclip", path=folder / "manifest.json", ignore=NOT_LOADED)
        for case in (key.removesuffix("/vfeats") for key in held if key.endswith("/vfeats")):
            tokens, mask = (torch.from_numpy(golden[f"{case}/{each}"]) for each in ("vfeats", "vmask"))
            with torch.inference_mode():
                hidden, pooled = towers.video_encoder(tokens, mask)
            yield Output(f"{case}/pooled_video", pooled.numpy(), golden[f"{case}/pooled_video"])
            yield Output(f"{case}/hidden", hidden.numpy(), golden[f"{case}/hidden"])
        if f"{name}/caps" in golden:
            texts = zip(golden[f"{name}/caps"], golden[f"{name}/cmasks"], strict=True)
            embedded = [embed(towers.text_encoder, _text(tokens[mask].tolist())) for tokens, mask in texts]
            yield Output(f"{name}/pooled_text", np.stack(embedded), golden[f"{name}/pooled_text"])


def _config(described: dict[str, int]) -> Config:
    names = {"hidden_size": "width", "num_attention_heads": "heads", "intermediate_size": "intermediate"}
    names |= {"vocab_size": "vocabulary", "max_video_len": "seconds"}
    return Config(**{names.get(key, key): value for key, value in described.items()})


def _text(tokens: list[int]) -> list[int]:
    """Return the text tower's input for an MMPT caption, [CLS] [SEP] words [SEP]: without the first [SEP]."""
    return tokens[:1] + tokens[2:]


def anchors(folder: Path) -> Iterator[Output]:
    """Yield the error of the text tower with the real weights for OEPP's embeddings of step names."""
    encoder = load_text(TOWERS[0], files_of(TOWERS[0].weights))
    yield text_anchor(
        lambda text: encoder.encode(encoder.tokens(text)), folder / "oepp_text_real_weights.npz", "videoclip_text_768"
    )

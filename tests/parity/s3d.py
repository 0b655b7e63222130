"""S3D against the network of antoine77340/S3D_HowTo100M."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stepline.backbones import checkpoint
from stepline.backbones.presets.s3d import TOWERS
from stepline.backbones.registry import files_of
from stepline.backbones.s3d import S3D, TextEncoder, folded, load_text
from tests.parity import Golden, Output, recipe, text_anchor, video01, weights


def outputs(manifest: Any, golden: Golden, folder: Path) -> Iterator[Output]:
    """Yield both layers of every clip, the token ids and the embeddings of texts."""
    made = recipe(golden)
    clips = {case: clip for case, clip in made["case"].items() if any(key.startswith(f"{case}/") for key in golden)}
    tensors = {
        key: torch.from_numpy(array) for key, array in weights(manifest["keys"], manifest["digest_sha256"]).items()
    }
    network = S3D("mixed_5c")
    checkpoint.load(network, tensors, model="s3d", path=folder / "manifest.json")
    folded(network)
    for case, clip in clips.items():
        with torch.inference_mode():
            mixed = network(torch.from_numpy(video01(clip["name"], clip["shape"], clip["sha256"])))
            embedding = network.fc(mixed)
        yield Output(f"{case}/mixed_5c", mixed.numpy(), golden[f"{case}/mixed_5c"])
        yield Output(f"{case}/video_embedding", embedding.numpy(), golden[f"{case}/video_embedding"])
    if "text/token_ids" in golden:
        encoder = TextEncoder(TOWERS[0], network.text_module, folder / "synthetic_dict.npy")
        tokens = [encoder.tokens(text) for text in made["text"]]
        yield Output("text/token_ids", np.array(tokens), golden["text/token_ids"])
        embedded = np.stack([encoder.encode(each) for each in tokens])
        yield Output("text/text_embedding", embedded, golden["text/text_embedding"])


def anchors(folder: Path) -> Iterator[Output]:
    """Yield the errors of the text tower with the real weights for Drop-DTW's and OEPP's embeddings of step names."""
    encoder = load_text(TOWERS[0], files_of(TOWERS[0].weights))
    for file, vectors in (
        ("s3d_text_real_weights_coin_steps.npz", "embedding"),
        ("oepp_text_real_weights.npz", "s3d_text_512"),
    ):
        yield text_anchor(lambda text: encoder.encode(encoder.tokens(text)), folder / file, vectors)

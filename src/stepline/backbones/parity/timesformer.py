"""TimeSformer's reference outputs: class tokens, means over all tokens, and the first logits of the classifier."""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from stepline.backbones.parity import Golden, Output, recipe, video01, weights
from stepline.backbones.presets.timesformer import HTSTEP
from stepline.backbones.timesformer import Config, Timesformer, fill
from stepline.errors import StoreError


def outputs(manifest: Any, golden: Golden, folder: Path) -> Iterator[Output]:
    """Yield our output and the reference's for each case of each configuration."""
    made = recipe(golden)["case"]
    for name, described in manifest["configs"].items():
        cases = [case for case in made if case.startswith(f"{name}_")]
        if not cases:
            continue
        arrays = weights(described["keys"], described["digest_sha256"])
        tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
        network = Timesformer(config_of(described["args"])).eval()
        fill(network, tensors, folder / "manifest.json")
        for case in cases:
            with torch.inference_mode():
                tokens = network.tokens(torch.from_numpy(clip_of(made[case])))
                feature = tokens[:, 0]
                ours = {
                    "cls_feature": feature,
                    "token_mean": tokens.mean(1),
                    "head_logits_first64": feature @ tensors["head.weight"][:64].T + tensors["head.bias"][:64],
                }
            for output, ours_of in ours.items():
                if f"{case}/{output}" in golden:
                    yield Output(f"{case}/{output}", ours_of.numpy(), golden[f"{case}/{output}"])


def clip_of(made: Any) -> NDArray[np.float32]:
    """Return the network's input of a case; raise StoreError if it differs from the golden file's."""
    mean, std = (np.array(each, np.float32)[:, None, None, None] for each in (HTSTEP.mean, HTSTEP.std))
    clip = (video01(made["name"], made["shape"]) - mean) / std
    if hashlib.sha256(clip.tobytes()).hexdigest() != made["sha256"]:
        raise StoreError(f"the recipe's input {made['name']} differs from the golden file's")
    return clip


def config_of(arguments: Any) -> Config:
    """Return the dimensions of a configuration, from the reference's arguments."""
    return Config(
        image_size=arguments["img_size"],
        patch_size=arguments["patch_size"],
        width=arguments["embed_dim"],
        depth=arguments["depth"],
        heads=arguments["num_heads"],
        frames=arguments["num_frames"],
    )

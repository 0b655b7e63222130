"""TimeSformer's reference outputs: class tokens, means over all tokens, and the first logits of the classifier."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from stepline.backbones.presets.timesformer import HTSTEP
from stepline.backbones.timesformer import Config, Timesformer, fill
from tests.parity import Golden, Output, clips, emptied, recipe, weights


def outputs(manifest: Any, golden: Golden, folder: Path) -> Iterator[Output]:
    """Yield our output and the reference's for each case of each configuration."""
    made = recipe(golden)["case"]
    for name, described in manifest["configs"].items():
        cases = [
            case for case in made if case.startswith(f"{name}_") and any(key.startswith(f"{case}/") for key in golden)
        ]
        if not cases:
            continue
        network = emptied(Timesformer(config_of(described["args"]))).eval()
        arrays = weights(described["keys"], described["digest_sha256"])
        tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
        fill(network, tensors, folder / "manifest.json")
        for case in cases:
            with torch.inference_mode():
                tokens = network.tokens(torch.from_numpy(clips(made[case], HTSTEP.mean, HTSTEP.std)))
                feature = tokens[:, 0]
                ours = {
                    "cls_feature": feature,
                    "token_mean": tokens.mean(1),
                    "head_logits_first64": feature @ tensors["head.weight"][:64].T + tensors["head.bias"][:64],
                }
            for output, ours_of in ours.items():
                if f"{case}/{output}" in golden:
                    yield Output(f"{case}/{output}", ours_of.numpy(), golden[f"{case}/{output}"])


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

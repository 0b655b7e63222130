"""EgoVLP's reference outputs: features and embeddings of clips, embeddings of texts given as token ids."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from stepline.backbones.egovlp import Config, TextTower, VideoTower, fill
from stepline.backbones.presets.egovlp import SPACEWALK
from tests.parity import Golden, Output, emptied, normalised, recipe, same_input, video01, weights


def outputs(manifest: Any, golden: Golden, folder: Path) -> Iterator[Output]:
    """Yield our output and the reference's for each case of each configuration."""
    made = {name.rpartition("/")[2]: (name, each) for name, each in recipe(golden).items()}
    for name, described in manifest["configs"].items():
        cases = [
            case for case in made if case.startswith(f"{name}_") and any(key.startswith(f"{case}/") for key in golden)
        ]
        text = f"{name}/text_embed"
        if not cases and text not in golden:
            continue
        arrays = weights(described["keys"], described["digest_sha256"])
        tensors = {key: torch.from_numpy(array) for key, array in arrays.items()}
        config = config_of({key: shape for key, (shape, *_) in described["keys"].items()})
        video_tower = emptied(VideoTower(config)).eval()
        fill(video_tower, tensors, folder / "manifest.json")
        for case in cases:
            with torch.inference_mode():
                clips = torch.from_numpy(clip_of(*made[case]))
                ours = {"video_feature": video_tower.video_model(clips), "video_embed": video_tower(clips)}
            for output, vectors in ours.items():
                if f"{case}/{output}" in golden:
                    yield Output(f"{case}/{output}", vectors.numpy(), golden[f"{case}/{output}"])
        if text in golden:
            text_tower = emptied(TextTower(config)).eval()
            fill(text_tower, tensors, folder / "manifest.json")
            padded = zip(golden[f"{name}/input_ids"], golden[f"{name}/attention_mask"], strict=True)
            with torch.inference_mode():
                embedded = [text_tower(torch.from_numpy(ids[mask == 1])[None])[0].numpy() for ids, mask in padded]
            yield Output(text, np.stack(embedded), golden[text])


def clip_of(name: str, made: Any) -> NDArray[np.float32]:
    """Return the network's input of a case; its digest is that of the frames in order of time."""
    batch, frames, colours, height, width = made["shape"]
    video = video01(name, (batch, colours, frames, height, width))
    clip = normalised(video, SPACEWALK.mean, SPACEWALK.std)
    same_input(name, clip.swapaxes(1, 2), made["sha256"])
    return clip


def config_of(shapes: dict[str, list[int]]) -> Config:
    """Return the dimensions of a configuration from its shapes. Heads have width 64, or 16 in a narrower network."""
    width, _, patch, _ = shapes["video_model.patch_embed.proj.weight"]
    dimension, text_width = shapes["txt_proj.1.weight"]
    return Config(
        image_size=patch * round((shapes["video_model.pos_embed"][1] - 1) ** 0.5),
        patch_size=patch,
        frames=shapes["video_model.temporal_embed"][1],
        width=width,
        depth=sum(key.endswith(".norm3.weight") for key in shapes),
        heads=width // 64 or width // 16,
        text_width=text_width,
        text_hidden=shapes["text_model.transformer.layer.0.ffn.lin1.weight"][0],
        text_depth=sum(key.endswith(".sa_layer_norm.weight") for key in shapes),
        text_heads=text_width // 64 or text_width // 16,
        vocabulary=shapes["text_model.embeddings.word_embeddings.weight"][0],
        positions=shapes["text_model.embeddings.position_embeddings.weight"][0],
        dimension=dimension,
    )

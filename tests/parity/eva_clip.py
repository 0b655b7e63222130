"""EVA-01-CLIP's reference outputs: vectors of images and texts, and token ids; and its public example."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from stepline.backbones import clip_text, eva_clip
from stepline.backbones.picture import picture
from stepline.backbones.presets.clip import MEAN, STD
from stepline.backbones.presets.eva_clip import HIREST, TOWERS
from stepline.backbones.registry import files_of
from stepline.media.frame import ArrayFrame
from tests.parity import Golden, Output, clips, deviation, drawn, in_turns, normalised, recipe

EXAMPLE = {"a diagram": 1.0, "a dog": 2.0857e-10, "a cat": 4.8534e-12}
"""Captions of eva_CLIP.png and their probabilities, from the README of EVA-01/clip at baaivision/EVA 5623d08b."""
ALLOWED = 0.1
"""The allowed error of logits, which differ by up to 26: the README does not state the precision of its example."""


def outputs(manifest: Any, golden: Golden, folder: Path) -> Iterator[Output]:
    """Yield our outputs and the reference's for each configuration that has outputs."""
    made = recipe(golden)
    for name, described in manifest["configs"].items():
        if not any(key.startswith(f"{name}/") for key in golden):
            continue
        config = config_of(described["config"])
        keys = described["keys"]
        ours: dict[str, Any] = {}
        if name in made["case"]:
            network = eva_clip.ImageTower(config)
            blocks = in_turns(network.trunk.blocks, keys, "visual.blocks.")
            others = {key: rule for key, rule in keys.items() if key not in blocks}
            eva_clip.fill(network.trunk, drawn(others, "visual.") | blocks, "visual.", folder / "manifest.json")
            norm = network.trunk.get_submodule("norm")
            norm.register_forward_hook(lambda *seen, ours=ours: ours.update(visual_cls_normed=seen[-1][:, 0]))
            with torch.inference_mode():
                ours["image_embed"] = network(torch.from_numpy(clips(made["case"][name], MEAN, STD)))
            del network
        tower = clip_text.tower(config.text)
        eva_clip.fill(tower, drawn(keys, "text."), "text.", folder / "manifest.json")
        encoder = clip_text.TextEncoder(replace(TOWERS[0], normalise=False), clip_text.tokenize, tower)
        ours["text_embed"] = np.stack([encoder.encode(encoder.tokens(text)) for text in made["text"]])
        for key in ours:
            if f"{name}/{key}" in golden:
                yield Output(f"{name}/{key}", np.asarray(ours[key]), golden[f"{name}/{key}"])
    if "token_ids" in golden:
        yield Output("token_ids", np.array([clip_text.tokenize(text) for text in made["text"]]), golden["token_ids"])


def anchors(folder: Path) -> Iterator[Output]:
    """Yield the error of the repository's example with the real weights: the largest log probability difference."""
    photo = ArrayFrame(np.asarray(Image.open(folder / "eva_CLIP.png").convert("RGB")))
    pixels = picture(photo, HIREST.steps).transpose(2, 0, 1).astype(np.float32)
    clip = normalised((pixels / 255)[None, :, None], MEAN, STD)
    files = files_of(HIREST.weights)
    network = eva_clip.load(HIREST, files)
    with torch.inference_mode():
        image = network(torch.from_numpy(clip))[0].numpy()
    del network
    encoder = eva_clip.load_text(TOWERS[0], files)
    texts = np.stack([encoder.encode(encoder.tokens(text)) for text in EXAMPLE])
    logits = 100 * (texts @ image).astype(np.float64)
    ours = logits - np.logaddexp.reduce(logits)
    yield deviation("eva_CLIP.png", np.abs(ours - np.log(list(EXAMPLE.values()))).max(), ALLOWED)


def config_of(described: Any) -> eva_clip.Config:
    """Return the dimensions of a configuration from the manifest."""
    vision, text = described["vision_cfg"], described["text_cfg"]
    return eva_clip.Config(
        dimension=described["embed_dim"],
        image=vision["image_size"],
        patch=vision["patch_size"],
        width=vision["width"],
        heads=vision["width"] // vision["head_width"],
        layers=vision["layers"],
        mlp_ratio=vision["mlp_ratio"],
        text=clip_text.Config(
            dimension=described["embed_dim"],
            width=text["width"],
            heads=text["heads"],
            layers=text["layers"],
            quick_gelu=False,
        ),
    )

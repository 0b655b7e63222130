"""InternVideo's reference outputs: vectors of clips of several lengths, of texts, and token ids."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from stepline.backbones import clip_text
from stepline.backbones.internvideo import Config, VideoTower, fill
from stepline.backbones.presets.clip import MEAN, STD
from stepline.backbones.presets.internvideo import TOWERS
from tests.parity import Golden, Output, clips, drawn, in_turns, recipe


def outputs(manifest: Any, golden: Golden, folder: Path) -> Iterator[Output]:
    """Yield our outputs and the reference's for each configuration that has outputs."""
    made = recipe(golden)
    for name, described in manifest["configs"].items():
        cases = [case for case in made["case"] if f"{case}/video_embed" in golden and case.startswith(f"{name}_")]
        text = f"{name}/text_embed"
        if not cases and text not in golden:
            continue
        keys = described["keys"]
        config = config_of(manifest["args"][name], {key: shape for key, (shape, *_) in keys.items()})
        network = VideoTower(config)
        blocks = in_turns(network.visual.transformer.resblocks, keys, "visual.transformer.resblocks.")
        others = {key: rule for key, rule in keys.items() if key not in blocks}
        fill(network, drawn(others, "visual") | blocks, folder / "manifest.json")
        for case in cases:
            with torch.inference_mode():
                ours = network(torch.from_numpy(clips(made["case"][case], MEAN, STD))).numpy()
            yield Output(f"{case}/video_embed", ours, golden[f"{case}/video_embed"])
        del network
        if text in golden:
            tower = clip_text.tower(config.text)
            its = tower.state_dict().keys()
            fill(tower, drawn({key: rule for key, rule in keys.items() if key in its}, ""), folder / "manifest.json")
            encoder = clip_text.TextEncoder(TOWERS[0], clip_text.tokenize, tower)
            embedded = [encoder.encode(encoder.tokens(each)) for each in made["text"]]
            yield Output(text, np.stack(embedded), golden[text])
    if "token_ids" in golden:
        yield Output("token_ids", np.array([clip_text.tokenize(each) for each in made["text"]]), golden["token_ids"])


def config_of(arguments: Any, shapes: dict[str, list[int]]) -> Config:
    """Return the dimensions of a configuration, from the reference's arguments and shapes."""
    width, dimension = shapes["visual_proj"]
    patch = shapes["visual.conv1.weight"][-1]
    text_width = shapes["text_projection"][0]
    return Config(
        dimension=dimension,
        width=width,
        heads=arguments["n_head"],
        layers=blocks(shapes, "visual.transformer.resblocks."),
        image=patch * round((shapes["visual.positional_embedding"][0] - 1) ** 0.5),
        patch=patch,
        extractors=tuple(arguments["return_list"]),
        text=clip_text.Config(
            dimension=dimension,
            width=text_width,
            heads=arguments.get("text_heads") or arguments["transformer_heads"],
            layers=blocks(shapes, "transformer.resblocks."),
            quick_gelu=True,
        ),
    )


def blocks(shapes: dict[str, list[int]], prefix: str) -> int:
    """Return the number of blocks under ``prefix``."""
    return len({key.removeprefix(prefix).split(".")[0] for key in shapes if key.startswith(prefix)})

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from stepline.backbones import clip_text, internvideo
from stepline.backbones.presets.internvideo import PRESETS, TOWERS
from stepline.errors import StoreError
from tests.parity import TOLERANCE
from tests.parity import internvideo as reference

FOLDER = "internvideo"
Errors = Callable[..., dict[str, float]]


@pytest.mark.parametrize("mistake", ["bgr", "time_reversed", "balance zero", "ln eps 1e-6"])
def test_the_check_sees_the_mistake(
    mistake: str, errors: Errors, mistakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference's figures are of the case with 8 frames; rounding is up to 1e-7 of them."""

    class Mistaken(internvideo.VideoTower):
        def forward(self, clips: torch.Tensor) -> torch.Tensor:
            if mistake == "balance zero":
                self.visual.transformer.balance.zero_()
            if mistake == "ln eps 1e-6":
                for module in self.modules():
                    if isinstance(module, torch.nn.LayerNorm):
                        module.eps = 1e-6
            flipped = {"bgr": [1], "time_reversed": [2]}.get(mistake)
            return super().forward(clips.flip(flipped) if flipped else clips)

    for module in (internvideo, reference):
        monkeypatch.setattr(module, "VideoTower", Mistaken)
    (found,) = errors("tiny_t8/video_embed").values()
    assert found > TOLERANCE
    assert found == pytest.approx(mistakes["tiny"][mistake], rel=1e-3, abs=2e-7)


@pytest.fixture
def config(manifest: Any, monkeypatch: pytest.MonkeyPatch) -> internvideo.Config:
    """The small network, in place of the published one."""
    shapes = {key: shape for key, (shape, *_) in manifest["configs"]["tiny"]["keys"].items()}
    config = reference.config_of(manifest["args"]["tiny"], shapes)
    monkeypatch.setattr(internvideo, "Config", lambda: config)
    return config


def clips(config: internvideo.Config, frames: int) -> torch.Tensor:
    return torch.rand(2, 3, frames, config.image, config.image, generator=torch.Generator().manual_seed(0))


def test_the_published_dimensions_are_those_of_the_manifest(manifest: Any) -> None:
    shapes = {key: shape for key, (shape, *_) in manifest["configs"]["full"]["keys"].items()}
    assert reference.config_of(manifest["args"]["full"], shapes) == internvideo.Config()


def test_both_layouts_of_checkpoints_give_one_network(
    tensors: dict[str, torch.Tensor], config: internvideo.Config, tmp_path: Path
) -> None:
    bare = {f"clip.{key}": value for key, value in tensors.items()}
    lightning = {"state_dict": {**bare, "caption_decoder.weight": torch.zeros(3)}, "epoch": 1}
    torch.save(bare, tmp_path / "pytorch_model.bin")
    torch.save(lightning, tmp_path / "InternVideo-MM-L-14.ckpt")
    found = []
    for path in (tmp_path / "pytorch_model.bin", tmp_path / "InternVideo-MM-L-14.ckpt"):
        network = internvideo.load(PRESETS[0], {path.name: path})
        encoder = internvideo.load_text(TOWERS[0], {path.name: path})
        vector = torch.from_numpy(encoder.encode(encoder.tokens("A dog")))
        found.append(torch.cat([network(clips(config, 3)).flatten(), vector]))
    assert torch.equal(*found)
    assert found[0].abs().min() > 0


def test_each_clip_is_seen_alone_and_normalised_where_the_spec_says_so(
    tensors: dict[str, torch.Tensor], config: internvideo.Config
) -> None:
    outputs = []
    for normalise in (False, True):
        network = internvideo.VideoTower(config, normalise=normalise)
        internvideo.fill(network, tensors, Path("weights"))
        outputs.append(network(clips(config, 5)))
        torch.testing.assert_close(network(clips(config, 5)[1:]), outputs[-1][1:], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(torch.nn.functional.normalize(outputs[0], dim=1), outputs[1])
    assert outputs[0].norm(dim=1).min() > 1.1


def test_a_checkpoint_without_the_video_tower_or_the_scale_is_one_line(
    tensors: dict[str, torch.Tensor], config: internvideo.Config, tmp_path: Path
) -> None:
    path = tmp_path / "pytorch_model.bin"
    torch.save({f"clip.{key}": value for key, value in tensors.items() if not key.startswith("visual.")}, path)
    with pytest.raises(StoreError, match=r"is not internvideo: 119 missing \(visual\."):
        internvideo.load(PRESETS[0], {path.name: path})
    torch.save(tensors, path)
    with pytest.raises(StoreError, match="holds no tensors whose names begin with 'clip.'"):
        internvideo.load(PRESETS[0], {path.name: path})
    torch.save({f"clip.{key}": value for key, value in tensors.items() if key != "logit_scale"}, path)
    with pytest.raises(StoreError, match="pytorch_model.bin has no logit_scale: get the published file"):
        internvideo.trainable({path.name: path}, torch.device("cpu"))


def test_towers_to_be_trained_are_those_that_are_loaded(
    tensors: dict[str, torch.Tensor], config: internvideo.Config, tmp_path: Path
) -> None:
    path = tmp_path / "pytorch_model.bin"
    torch.save({f"clip.{key}": value for key, value in tensors.items()}, path)
    towers = internvideo.trainable({path.name: path}, torch.device("cpu"))
    both = towers.parameters(video=True, text=True, scale=False)
    assert {name.removeprefix("clip.") for name in both} == tensors.keys() - set(internvideo.UNUSED)
    scaled = towers.parameters(video=True, text=True, scale=True)
    assert scaled.keys() - both.keys() == {"clip.logit_scale"}
    assert torch.equal(scaled["clip.logit_scale"], tensors["logit_scale"])
    assert all(parameter.requires_grad for parameter in both.values())
    video = towers.parameters(video=True, text=False, scale=False)
    assert video.keys() | towers.parameters(video=False, text=True, scale=False).keys() == both.keys()
    assert all(torch.equal(value, tensors[name.removeprefix("clip.")]) for name, value in both.items())

    with torch.no_grad():
        for parameter in both.values():
            parameter.mul_(1.1)
    tuned = tmp_path / "0.safetensors"
    save_file({**both, "loss": torch.zeros(3, dtype=torch.float64)}, tuned)
    network = internvideo.load(PRESETS[0], {tuned.name: tuned})
    encoder = internvideo.load_text(TOWERS[0], {tuned.name: tuned})
    tokens = encoder.tokens("A dog")
    with torch.inference_mode():
        torch.testing.assert_close(network(clips(config, 3)), towers.video(clips(config, 3)))
        np.testing.assert_allclose(encoder.encode(tokens), towers.text(torch.tensor([tokens]))[0].numpy(), rtol=1e-5)


def test_a_long_text_keeps_its_end() -> None:
    tokens = clip_text.tokenize("a very " * 60 + "long text")
    assert len(tokens) == 77
    assert tokens[0] == 49406
    assert tokens[-1] == 49407
    assert clip_text.tokenize("A Dog") == clip_text.tokenize("a dog")

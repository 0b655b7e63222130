from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from stepline.backbones import clip_text, eva_clip
from stepline.backbones.presets.eva_clip import PRESETS, TOWERS
from stepline.backbones.torchvision import make_importable
from stepline.errors import StoreError
from tests.parity import TOLERANCE
from tests.parity import eva_clip as reference

FOLDER = "evaclip"
Errors = Callable[..., dict[str, float]]


@pytest.mark.parametrize("mistake", ["visual ln eps 1e-5", "bgr", "text: no causal mask", "text: quickgelu"])
def test_the_check_sees_the_mistake(
    mistake: str, errors: Errors, mistakes: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    image_tower, text_tower = eva_clip.ImageTower, clip_text.tower

    class Mistaken(image_tower):  # type: ignore[misc, valid-type]
        def forward(self, clips: torch.Tensor) -> torch.Tensor:
            for module in self.modules():
                if mistake == "visual ln eps 1e-5" and isinstance(module, torch.nn.LayerNorm):
                    module.eps = 1e-5
            vectors: torch.Tensor = super().forward(clips.flip(1) if mistake == "bgr" else clips)
            return vectors

    def mistaken(config: clip_text.Config) -> torch.nn.Module:
        tower = text_tower(replace(config, quick_gelu=mistake == "text: quickgelu"))
        if mistake == "text: no causal mask":
            tower.get_buffer("attn_mask").zero_()
        return tower

    monkeypatch.setattr(eva_clip, "ImageTower", Mistaken)
    monkeypatch.setattr(clip_text, "tower", mistaken)
    name = "tiny/text_embed" if mistake.startswith("text") else "tiny/image_embed"
    found = errors(name)[name]
    assert found > TOLERANCE
    assert found == pytest.approx(mistakes["tiny"][mistake], rel=1e-3, abs=1e-6)


@pytest.fixture
def config(manifest: Any, monkeypatch: pytest.MonkeyPatch) -> eva_clip.Config:
    """The small network, in place of the published one."""
    config = reference.config_of(manifest["configs"]["tiny"]["config"])
    monkeypatch.setattr(eva_clip, "Config", lambda: config)
    return config


def test_the_published_dimensions_are_those_of_the_manifest_and_of_open_clip(manifest: Any) -> None:
    assert reference.config_of(manifest["configs"]["full"]["config"]) == eva_clip.Config()
    make_importable()
    from open_clip import get_model_config
    from open_clip.model import CustomTextCLIP

    described = get_model_config("EVA01-g-14")
    with torch.device("meta"):
        theirs = CustomTextCLIP(described["embed_dim"], described["vision_cfg"], described["text_cfg"])
    names = {
        name.replace("visual.trunk.", "visual.") if name != "logit_scale" else "text.logit_scale": list(value.shape)
        for name, value in theirs.state_dict().items()
    }
    assert names == {name: shape for name, (shape, *_) in manifest["configs"]["full"]["keys"].items()}


@pytest.mark.parametrize("wrapped", ["bare", "model", "module", "state_dict"])
def test_every_layout_of_checkpoints_gives_one_network(
    wrapped: str, tensors: dict[str, torch.Tensor], config: eva_clip.Config, tmp_path: Path
) -> None:
    path = tmp_path / "eva_clip_psz14.pt"
    prefix = "module." if wrapped == "module" else ""
    held: Any = {f"{prefix}{key}": value.half() for key, value in tensors.items()}
    torch.save(held if wrapped == "bare" else {wrapped: held, "epoch": 1}, path)
    network = eva_clip.load(PRESETS[0], {path.name: path})
    pictures = torch.rand(2, 3, 1, 56, 56, generator=torch.Generator().manual_seed(0))
    expected = eva_clip.ImageTower(config, normalise=True)
    eva_clip.fill(expected.trunk, {key: value.half() for key, value in tensors.items()}, "visual.", path)
    assert torch.equal(network(pictures), expected(pictures))
    torch.testing.assert_close(network(pictures).norm(dim=1), torch.ones(2))
    encoder = eva_clip.load_text(TOWERS[0], {path.name: path})
    vector = encoder.encode(encoder.tokens("a dog"))
    assert vector.dtype == np.float32
    assert np.linalg.norm(vector) == pytest.approx(1)


def test_a_checkpoint_of_another_model_is_one_line(
    tensors: dict[str, torch.Tensor], config: eva_clip.Config, tmp_path: Path
) -> None:
    path = tmp_path / "eva_clip_psz14.pt"
    torch.save({**tensors, "visual.blocks.0.gamma_1": torch.ones(176)}, path)
    with pytest.raises(StoreError, match=r"is not eva_clip: 1 unexpected \(blocks.0.gamma_1\)"):
        eva_clip.load(PRESETS[0], {path.name: path})


def test_the_public_example_is_an_anchor(
    parity: Path, tensors: dict[str, torch.Tensor], config: eva_clip.Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With towers that give the published probabilities the error is 0; a logit further off, 1."""
    image = np.array([[0.6, 0.8, 0.0]], np.float32)
    monkeypatch.setattr(reference, "files_of", lambda _: {})
    seen: list[torch.Tensor] = []

    class Shown(torch.nn.Module):
        def forward(self, clips: torch.Tensor) -> torch.Tensor:
            seen.append(clips)
            return torch.from_numpy(image)

    class Texts:
        off = 0.0

        def tokens(self, text: str) -> list[int]:
            return [list(reference.EXAMPLE).index(text)]

        def encode(self, tokens: list[int]) -> Any:
            logit = np.log(list(reference.EXAMPLE.values()))[tokens[0]] + self.off * (tokens[0] == 1)
            return (image[0] * (1 + logit / 100)).astype(np.float32)

    monkeypatch.setattr(eva_clip, "load", lambda *_: Shown())
    monkeypatch.setattr(eva_clip, "load_text", lambda *_: Texts())
    (anchor,) = reference.anchors(parity / "real_outputs")
    assert anchor.error < 1e-3 < anchor.allowed
    assert seen[0].shape == (1, 3, 1, 224, 224)
    assert -2 < float(seen[0].min()) < float(seen[0].max()) < 2.8
    Texts.off = 1.0
    (anchor,) = reference.anchors(parity / "real_outputs")
    assert anchor.error == pytest.approx(1, abs=1e-3)

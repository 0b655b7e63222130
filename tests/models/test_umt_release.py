"""Checkpoints of the released UMT: the names and shapes of its state dict, written as it writes them."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from stepline.backbones.parity import weights  # noqa: E402
from stepline.errors import StoreError  # noqa: E402
from stepline.io import read_json  # noqa: E402
from stepline.models.training import loaded, restore  # noqa: E402
from stepline.models.umt import Umt  # noqa: E402
from stepline.models.umt_config import UmtConfig  # noqa: E402
from stepline.models.umt_release import load_released, network_of  # noqa: E402
from tests.models.umt import network, queries  # noqa: E402


@pytest.fixture(scope="module")
def manifest(parity: Path) -> Any:
    return read_json(parity / "umt/manifest.json")


@pytest.fixture(scope="module")
def released(manifest: Any) -> dict[str, Any]:
    tiny = manifest["configs"]["tiny"]
    return {name: torch.from_numpy(each) for name, each in weights(tiny["keys"], tiny["digest_sha256"]).items()}


def write(tensors: dict[str, Any]) -> Path:
    torch.save({"state_dict": tensors, "meta": {"epoch": 200}}, "umt.pth")
    return Path("umt.pth")


def shapes(manifest: Any, size: str) -> dict[str, Any]:
    keys = manifest["published_sizes_without_values"][size]["keys"]
    return {name: torch.empty(shape, device="meta") for name, (shape, *_) in keys.items()}


def test_a_checkpoint_is_a_network_of_its_sizes(released: dict[str, Any]) -> None:
    model = load_released(write(released), unit=2)
    config = model.config
    assert (config.feature_dim, config.text_dim, config.hidden, config.feedforward) == (24, 16, 64, 256)
    assert (config.decoder_layers, config.positions, config.heads, config.unit) == (3, 5000, 8, 2)
    assert not model.training
    for ours, theirs in (
        ("video.attention.output.bias", "video_enc.encoder.att.m.bias"),
        ("decoder.layers.2.among.query.weight", "query_dec.decoder.2.att1.q.weight"),
        ("decoder.layers.0.attention.key.weight", "query_dec.decoder.0.att2.k.weight"),
        ("decoder.layers.1.norms.2.weight", "query_dec.decoder.1.norm3.weight"),
        ("query.norm.bias", "query_gen.mapping.norm.bias"),
        ("offset.weight", "pred_head.1.offset_pred.linear.weight"),
    ):
        assert torch.equal(model.state_dict()[ours], released[theirs])


def test_the_defaults_are_the_published_sizes(manifest: Any) -> None:
    (size,) = [name for name in manifest["published_sizes_without_values"] if "audio" not in name]
    tensors = shapes(manifest, size)
    model = network_of(tensors, Path("x"))
    assert model.config == UmtConfig(feature_dim=1024, text_dim=512)
    assert sum(each.numel() for each in model.parameters()) == sum(each.numel() for each in tensors.values())


def test_a_network_that_hears_is_one_line(manifest: Any) -> None:
    tensors = shapes(manifest, "qvhighlights_video_audio")
    with pytest.raises(StoreError, match="x is UMT with an audio encoder: use one with only the video encoder"):
        network_of(tensors, Path("x"))


def test_another_checkpoint_is_one_line(released: dict[str, Any]) -> None:
    project, saliency = "video_enc.mapping.linear.weight", "pred_head.0.saliency_pred.linear.bias"
    for tensors, reason in (
        ({name: each for name, each in released.items() if name != project}, f"is not UMT: '{project}' is not there"),
        ({name: each for name, each in released.items() if name != saliency}, r"1 missing \(saliency.bias\)"),
        (released | {"translator.weight": torch.zeros(2)}, r"1 unexpected \(translator.weight\)"),
        (released | {project: torch.zeros(64)}, r"is not UMT \("),
        (released | {"query_dec.norm.bias": torch.zeros(3)}, r"1 of another form \(decoder.norm.bias is \[3\] floats"),
        ({}, "holds no tensors by name"),
    ):
        with pytest.raises(StoreError, match=reason):
            load_released(write(tensors))
    Path("cut.pth").write_bytes(write(released).read_bytes()[:9000])
    with pytest.raises(StoreError, match="is cut off"):
        load_released(Path("cut.pth"))


def test_what_a_fit_wrote_loads_back() -> None:
    from safetensors.torch import save_file

    model, batch = network(), queries((9, 2), (7, 3))
    save_file(model.state_dict() | {"loss": torch.ones(3)}, "fit.safetensors")
    with loaded(Path("fit.safetensors")) as tensors:
        again = restore(Umt(model.config), tensors, "cpu")
    assert torch.equal(again(batch).window, model(batch).window)

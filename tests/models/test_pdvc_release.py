"""Checkpoints of the released PDVC: the names and shapes of its state dict, written as it writes them."""

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from stepline.backbones.parity import weights  # noqa: E402
from stepline.errors import StoreError  # noqa: E402
from stepline.io import read_json  # noqa: E402
from stepline.models.pdvc_release import load_released  # noqa: E402


@pytest.fixture(scope="module")
def released(parity: Path) -> dict[str, Any]:
    tiny = read_json(parity / "pdvc/manifest.json")["configs"]["tiny"]
    arrays = weights(tiny["keys"], tiny["digest_sha256"])
    arrays |= {alias: arrays[key] for alias, key in tiny["aliases"].items()}
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def write(path: Path, tensors: dict[str, Any]) -> Path:
    torch.save({"epoch": 12, "model": tensors, "optimizer": {"state": {}, "param_groups": [{"lr": 5e-5}]}}, path)
    return path


def test_a_checkpoint_is_a_network_of_its_sizes(released: dict[str, Any], tmp_path: Path) -> None:
    network = load_released(write(tmp_path / "model-best.pth", released), caption_padding="zeros")
    config = network.config
    assert (config.feature_dim, config.vocabulary, config.queries, config.most_segments) == (32, 8, 10, 20)
    assert (config.hidden, config.feedforward, config.caption_hidden, config.attention_hidden) == (512,) * 4
    assert (config.levels, config.points, config.encoder_layers, config.decoder_layers) == (4, 4, 2, 2)
    assert config.caption_padding == "zeros"
    assert not network.training
    said = network.decode(torch.randn(1, 24, 32), durations_s=torch.tensor([100.0]))
    assert bool(said[0].segments.isfinite().all())


def test_without_box_refinement_heads_are_shared_and_still_load(released: dict[str, Any], tmp_path: Path) -> None:
    """As the configuration for given segments: the decoder has no boxes of its own."""
    shared = {name: value for name, value in released.items() if not name.startswith("transformer.decoder.bbox_head")}
    path = write(tmp_path / "given.pth", shared)
    with pytest.raises(StoreError, match="given.pth has no box refinement: use it with given segments"):
        load_released(path)
    network = load_released(path, proposals="ground_truth")
    segments = torch.tensor([[0.1, 0.4], [0.5, 0.9]])
    said = network.decode(torch.randn(1, 24, 32), durations_s=torch.tensor([100.0]), segments=[segments])
    assert torch.equal(said[0].segments, segments)


def test_another_checkpoint_is_one_line(released: dict[str, Any], tmp_path: Path) -> None:
    without = {name: value for name, value in released.items() if name != "query_embed.weight"}
    one_less = {name: value for name, value in released.items() if name != "class_head.1.bias"}
    other = released | {"caption_head.1.logit.bias": released["caption_head.0.logit.bias"] + 1}
    bent = released | {"caption_head.0.core.rnn.weight_hh_l0": torch.zeros(4)}
    bent |= {"caption_head.1.core.rnn.weight_hh_l0": torch.zeros(4)}
    more = released | {"translator.weight": torch.zeros(2)}
    for tensors, reason in (
        (without, "is not PDVC: 'query_embed.weight' is not there"),
        (one_less, r"is not PDVC: 1 missing \(scores.1.bias\)"),
        (more, r"is not PDVC: 1 unexpected \(translator.weight\)"),
        (bent, r"is not PDVC \("),
        (other, "one caption head for all layers: caption_head.1.logit.bias is another head's"),
        ({}, "holds no tensors by name"),
    ):
        with pytest.raises(StoreError, match=reason):
            load_released(write(tmp_path / "x.pth", tensors))
    (tmp_path / "cut.pth").write_bytes(write(tmp_path / "x.pth", released).read_bytes()[:9000])
    with pytest.raises(StoreError, match="is cut off"):
        load_released(tmp_path / "cut.pth")

"""TAN: the mistakes that outputs of the released code would show, and the published sizes."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stepline.models.tan import Block, Encoder, QuickGelu  # noqa: E402
from tests.parity import TOLERANCE, weights  # noqa: E402
from tests.parity.tan import Tan, TanConfig, network_of  # noqa: E402


def test_the_published_sizes_are_the_defaults(parity: Path) -> None:
    keys = json.loads((parity / "tan/manifest.json").read_text())["configs"]["full_e6d6"]["keys"]
    tensors = {name: torch.zeros(1).expand(each[0]) for name, each in keys.items()}
    assert network_of(tensors).config == replace(TanConfig(), alignability=True)


def bare(network: Tan, *names: str) -> None:
    for name in names:
        setattr(network, name, torch.nn.Identity())


def raw_stages(self: Encoder, rows: Any, padding: Any) -> list[Any]:
    stages = []
    for block in self.resblocks:
        rows, _ = block(rows, padding)
        stages.append(rows)
    return stages


def post_norm(self: Block, rows: Any, padding: Any) -> Any:
    normed = self.ln_1(rows + self.attn(rows, padding))
    rows = self.ln_2(normed + self.mlp(normed))
    return rows, rows


def without_positions(self: Tan, features: Any, positions: Any) -> Any:
    return self.ln_video_init(self.video_pre_proj(features))


def with_heads(network: Tan, heads: int) -> None:
    for module in network.modules():
        if isinstance(module, Block):
            module.attn.heads = heads


def with_eps(network: Tan, eps: float) -> None:
    for module in network.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = eps


def with_text_positions(network: Tan) -> None:
    network.config = replace(network.config, text_positions=True)


Change = Callable[[Tan, pytest.MonkeyPatch, dict[str, Any]], Any]
MISTAKES: dict[str, Change] = {
    "no padding masks": lambda _, __, given: given.update(video_padding=None, text_padding=None),
    "text padding not masked": lambda _, __, given: given.update(text_padding=given["text_padding"] & False),
    "GELU instead of QuickGELU": lambda _, patch, __: patch.setattr(
        QuickGelu, "forward", lambda self, x: torch.nn.functional.gelu(x)
    ),
    "intermediate stages without the next block's first LayerNorm": lambda _, patch, __: patch.setattr(
        Encoder, "forward", raw_stages
    ),
    "no LayerNorm after the encoders": lambda network, *_: bare(network, "ln_video_post_enc", "ln_joint_post_enc"),
    "position table not normalised": lambda network, *_: bare(network, "ln_position_init"),
    "no video positions": lambda _, patch, __: patch.setattr(Tan, "video_rows", without_positions),
    "text positions in the joint encoder": lambda network, *_: with_text_positions(network),
    "position start 3 instead of 0 (random start left on)": lambda _, __, given: given.update(start=3),
    "4 heads instead of 8": lambda network, *_: with_heads(network, 4),
    "text projection without LayerNorm": lambda network, *_: bare(network, "ln_text_init"),
    "LayerNorm eps 1e-6": lambda network, *_: with_eps(network, 1e-6),
    "post-norm blocks": lambda _, patch, __: patch.setattr(Block, "forward", post_norm),
}
NO_MISTAKE = "(noise) same model in float64"


@pytest.fixture(scope="module")
def golden(parity: Path) -> dict[str, Any]:
    with np.load(parity / "tan/golden_a.npz") as loaded:
        return {name: torch.from_numpy(each) for name, each in loaded.items() if name.startswith(("in/", "e2d3/"))}


@pytest.fixture
def small(parity: Path) -> Tan:
    config = json.loads((parity / "tan/manifest.json").read_text())["configs"]["e2d3"]
    filled = weights(config["keys"], config["digest_sha256"])
    return network_of({name: torch.tensor(each) for name, each in filled.items()})


@torch.inference_mode()
def errors(network: Tan, golden: dict[str, Any], **given: Any) -> dict[str, float]:
    """Return the relative L2 errors of what is said of valid rows with valid texts."""
    said = network(golden["in/video"], golden["in/text"], **given)
    rows, texts = ~golden["in/video_padding"], ~golden["in/text_padding"]
    cells = rows[:, :, None, None] & texts
    pairs = {
        "joint_last": (said.joint[:, -1], golden["e2d3/logits_joint"][:, -1], cells),
        "joint_all_stages": (said.joint.movedim(1, -1), golden["e2d3/logits_joint"].movedim(1, -1), cells),
        "dual_last": (said.dual[:, -1], golden["e2d3/logits_dual"][:, -1], cells),
        "dual_all_stages": (said.dual.movedim(1, -1), golden["e2d3/logits_dual"].movedim(1, -1), cells),
        "alignability_joint": (
            said.joint_alignability.movedim(1, -1),
            golden["e2d3/joint_logits_alignability"].movedim(1, -1),
            texts[..., None],
        ),
    }
    found = {}
    for name, (ours, reference, where) in pairs.items():
        found[name] = float((ours[where] - reference[where]).norm() / reference[where].norm())
    return found


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_seen_and_is_the_listed_one(
    mistake: str, small: Tan, golden: dict[str, Any], parity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = json.loads((parity / "tan/mutations.json").read_text())["values"]
    assert listed.keys() == {*MISTAKES, NO_MISTAKE}
    given: dict[str, Any] = {name: golden[f"in/{name}"] for name in ("video_padding", "text_padding")}
    rounding = errors(small, golden, **given)
    assert max(rounding.values()) < TOLERANCE
    MISTAKES[mistake](small, monkeypatch, given)
    found = errors(small, golden, **given)
    assert {name for name, error in found.items() if error > TOLERANCE} == listed[mistake].keys()
    for name, error in listed[mistake].items():
        roundings = rounding[name] + listed[NO_MISTAKE][name]  # of this processor, and of the one that listed it
        assert found[name] == pytest.approx(error, rel=1e-3, abs=roundings), name

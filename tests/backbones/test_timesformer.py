"""TimeSformer: the reference's outputs, mistakes that the check catches, and the checkpoint's forms."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from stepline.backbones import timesformer
from stepline.backbones.presets.timesformer import DISTANT, HTSTEP, HTSTEP_AS_RELEASED
from stepline.backbones.timesformer import CHECKPOINT, STEPS, Timesformer, load
from stepline.backbones.weights import WEIGHTS
from stepline.errors import StoreError
from tests.parity import TOLERANCE
from tests.parity import timesformer as reference

FOLDER, OUTPUT = "timesformer", "tiny_4x64/cls_feature"
Errors = Callable[..., dict[str, float]]


@pytest.fixture
def published(
    manifest: Any, tensors: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> dict[str, torch.Tensor]:
    """Tensors by the names of the published checkpoint, of tiny dimensions, and a network of such."""
    described = manifest["configs"]["tiny"]
    monkeypatch.setattr(timesformer, "Config", lambda: reference.config_of(described["args"]))
    return tensors | {"head.weight": torch.zeros(STEPS, 48), "head.bias": torch.zeros(STEPS)}


def _saved(held: Any, folder: Path) -> dict[str, Path]:
    torch.save(held, folder / CHECKPOINT)
    return {CHECKPOINT: folder / CHECKPOINT}


def _clips(count: int = 2, frames: int = 4) -> torch.Tensor:
    return torch.randn(count, 3, frames, 64, 64, generator=torch.Generator().manual_seed(0))


def _imagenet(network: Timesformer, clips: torch.Tensor) -> torch.Tensor:
    mean, std = (torch.tensor(each)[:, None, None, None] for each in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    return (clips * 0.225 + 0.45 - mean) / std


def _eps(network: Timesformer, clips: torch.Tensor) -> torch.Tensor:
    for module in network.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.eps = 1e-5
    return clips


def _without(table: str, rows: slice = slice(None)) -> Callable[[Timesformer, torch.Tensor], torch.Tensor]:
    def mistaken(network: Timesformer, clips: torch.Tensor) -> torch.Tensor:
        getattr(network.model.embeddings, table)[:, rows] = 0
        return clips

    return mistaken


MISTAKES: dict[str, Callable[[Timesformer, torch.Tensor], torch.Tensor]] = {
    "bgr": lambda _, clips: clips.flip(1),
    "time_reversed": lambda _, clips: clips.flip(2),
    "imagenet mean/std": _imagenet,
    "ln eps 1e-5": _eps,
    "no time_embed": _without("time_embeddings"),
    "no pos_embed": _without("position_embeddings"),
    "no pos on cls": _without("position_embeddings", slice(0, 1)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_check_catches(mistake: str, errors: Errors, mistakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MISTAKES.keys() == mistakes.keys()
    tokens = Timesformer.tokens
    monkeypatch.setattr(
        Timesformer, "tokens", lambda network, clips: tokens(network, MISTAKES[mistake](network, clips))
    )
    assert errors(OUTPUT)[OUTPUT] > 3 * TOLERANCE


@pytest.mark.parametrize(
    "form",
    [
        lambda held: {
            "epoch": 14,
            "model_state": {f"model.{name}": each for name, each in held.items()},
            "optimizer_state": {"state": {}},
            "cfg": "TRAIN: {}",
        },
        lambda held: {"state_dict": {f"module.{name}": each for name, each in held.items()}},
        lambda held: {"model": held},
        lambda held: held,
        lambda held: held | {"head2.weight": torch.zeros(1), "text_lp.bias": torch.zeros(1)},
    ],
    ids=["of the repository", "of several GPUs", "nested", "bare", "with texts"],
)
def test_a_checkpoint_loads_in_each_public_form(
    form: Callable[[Any], Any], published: dict[str, torch.Tensor], manifest: Any, tmp_path: Path
) -> None:
    expected = Timesformer(reference.config_of(manifest["configs"]["tiny"]["args"])).eval()
    timesformer.fill(expected, published, Path("made"))
    network = load(HTSTEP, _saved(form(published), tmp_path))
    assert not network.training
    with torch.inference_mode():
        found, wanted = network(_clips()), expected(_clips())
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)


def test_the_other_public_network_of_howto100m_is_named(published: dict[str, torch.Tensor], tmp_path: Path) -> None:
    other = published | {"head.weight": torch.zeros(1059, 48), "head.bias": torch.zeros(1059)}
    with pytest.raises(StoreError, match="with 1059 classes, not the 10588 steps of distant supervision"):
        load(HTSTEP, _saved({"model_state": {f"model.{name}": each for name, each in other.items()}}, tmp_path))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda held: held.pop("time_embed"), r"missing \(time_embed\)"),
        (lambda held: held.update(fc1=torch.zeros(1)), r"unexpected \(fc1\)"),
        (lambda held: held.update(time_embed=torch.zeros(1, 8, 48)), r"time_embed is \[1, 8, 48\]"),
        (lambda held: held.update({"blocks.2.norm1.bias": torch.zeros(48)}), r"unexpected \(blocks.2.norm1.bias\)"),
    ],
)
def test_a_checkpoint_must_fit(
    change: Callable[[Any], Any], message: str, published: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    change(published)
    with pytest.raises(StoreError, match=message):
        load(HTSTEP, _saved(published, tmp_path))


def test_vectors_depend_on_their_clip_alone(published: dict[str, torch.Tensor], tmp_path: Path) -> None:
    network = load(HTSTEP, _saved(published, tmp_path))
    with torch.inference_mode():
        together = network(_clips(3))
        longer = network(_clips(1, 8))
        alone = torch.cat([network(clip[None]) for clip in _clips(3)])
    assert longer.shape == (1, 48)
    torch.testing.assert_close(together, alone, rtol=1e-5, atol=1e-5)
    assert network.to("meta")(_clips(2, 8).to("meta")).shape == (2, 48), "nothing is bound to the CPU"
    unit = load(replace(HTSTEP, normalise=True), _saved(published, tmp_path))
    with torch.inference_mode():
        torch.testing.assert_close(unit(_clips()).norm(dim=1), torch.ones(2))


def test_the_files_are_those_of_the_weights() -> None:
    for spec in (HTSTEP, HTSTEP_AS_RELEASED, DISTANT):
        assert CHECKPOINT in {file.name for name in spec.weights for file in WEIGHTS[name].files}


def test_presets_are_sampled_as_published() -> None:
    assert HTSTEP.hop / HTSTEP.fps == 1
    assert HTSTEP.num_frames * HTSTEP.interval == HTSTEP.hop
    assert replace(HTSTEP_AS_RELEASED, name=HTSTEP.name, frame_rule="at_or_before", tail="repeat") == HTSTEP
    assert (DISTANT.placement, DISTANT.steps[0][1:3]) == ("ends", (640, 360))

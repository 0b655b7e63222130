"""EgoVLP: the reference's outputs, mistakes that the check catches, the checkpoint's form, and texts."""

import json
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from stepline.backbones import egovlp
from stepline.backbones.egovlp import TOKENIZER, SpaceTimeTransformer, VideoTower, load, load_text
from stepline.backbones.presets.egovlp import FROZEN, NLQ, SPACEWALK, TOWERS
from stepline.backbones.weights import WEIGHTS
from stepline.errors import StoreError
from tests.parity import TOLERANCE
from tests.parity import egovlp as reference

FOLDER = "egovlp"
Errors = Callable[..., dict[str, float]]
CHECKPOINT = "EgoVLP_PT_BEST.pth"


@pytest.fixture
def published(
    manifest: Any, tensors: dict[str, torch.Tensor], monkeypatch: pytest.MonkeyPatch
) -> dict[str, torch.Tensor]:
    """Tensors by the names of the published checkpoint, of tiny dimensions, and towers of such."""
    described = manifest["configs"]["tiny"]
    config = reference.config_of({name: shape for name, (shape, *_) in described["keys"].items()})
    monkeypatch.setattr(egovlp, "Config", lambda: config)
    return dict(tensors)


def _clips(count: int = 2, frames: int = 4) -> torch.Tensor:
    return torch.randn(count, 3, frames, 64, 64, generator=torch.Generator().manual_seed(0))


def _saved(tensors: dict[str, torch.Tensor], folder: Path) -> dict[str, Path]:
    """Save them as the repository does, with an object of a class that is gone when the file is read."""
    module: Any = ModuleType("parse_config")
    module.ConfigParser = type("ConfigParser", (), {"__module__": module.__name__})
    sys.modules[module.__name__] = module
    held = {
        "arch": "FrozenInTime",
        "epoch": 4,
        "state_dict": {f"module.{name}": each for name, each in tensors.items()},
        "optimizer": {"state": {}, "param_groups": [{"lr": 3e-5, "params": [0]}]},
        "monitor_best": 0.5,
        "config": module.ConfigParser(),
    }
    torch.save(held, folder / CHECKPOINT)
    del sys.modules[module.__name__]
    return {CHECKPOINT: folder / CHECKPOINT}


def _with_tokenizer(files: dict[str, Path]) -> dict[str, Path]:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "open", "the", "hatch", "##es", *(f"w{n}" for n in range(492))]
    tokenizer = Tokenizer(models.WordPiece({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_padding(length=12)
    path = files[CHECKPOINT].with_name(TOKENIZER)
    tokenizer.save(str(path))
    return files | {TOKENIZER: path}


def _eps(network: SpaceTimeTransformer, clips: torch.Tensor) -> torch.Tensor:
    for block in network.blocks:
        block.norm1.eps = 1e-5
    return clips


MISTAKES: dict[str, tuple[str, Callable[[SpaceTimeTransformer, torch.Tensor], torch.Tensor]]] = {
    "bgr": ("tiny_t4/video_embed", lambda _, clips: clips.flip(1)),
    "time reversed": ("tiny_t4/video_embed", lambda _, clips: clips.flip(2)),
    "norm1 eps 1e-5": ("tiny_t16/video_embed", _eps),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_check_catches(mistake: str, errors: Errors, mistakes: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert MISTAKES.keys() == mistakes.keys()
    forward = SpaceTimeTransformer.forward
    caught_by, mistaken = MISTAKES[mistake]
    monkeypatch.setattr(
        SpaceTimeTransformer, "forward", lambda network, clips: forward(network, mistaken(network, clips))
    )
    found = errors(caught_by, "tiny_t4/video_embed")
    assert found[caught_by] > TOLERANCE
    assert found["tiny_t4/video_embed"] == pytest.approx(mistakes[mistake], rel=0.1)


def test_the_public_files_form_is_loaded(
    published: dict[str, torch.Tensor], golden: dict[str, Any], tmp_path: Path
) -> None:
    held = published | {"text_model.embeddings.position_ids": torch.arange(512)[None]}
    files = _with_tokenizer(_saved(held, tmp_path))
    expected = VideoTower(egovlp.Config()).eval()
    egovlp.fill(expected, published, Path("made"))
    tower, encoder = load(replace(SPACEWALK, num_frames=16), files), load_text(TOWERS[0], files)
    assert not tower.training
    with torch.inference_mode():
        torch.testing.assert_close(tower(_clips()), expected(_clips()), rtol=0, atol=0)
    ids = golden["tiny/input_ids"][2][golden["tiny/attention_mask"][2] == 1]
    vector = encoder.encode(ids.tolist())
    assert vector.dtype == np.float32
    np.testing.assert_allclose(vector, golden["tiny/text_embed"][2], rtol=0, atol=1e-5)


@pytest.mark.parametrize("frames", [2, 4, 16, 20])
def test_a_table_of_any_length_is_cut_or_filled_with_zeros(
    frames: int, published: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    table = published[egovlp.TABLE]
    wanted = torch.cat((table, torch.zeros(1, 4, 48)), dim=1)[:, :frames]
    tower = load(replace(SPACEWALK, num_frames=frames), _saved(published, tmp_path))
    torch.testing.assert_close(tower.video_model.temporal_embed.data, wanted, rtol=0, atol=0)
    with torch.inference_mode():
        assert tower(_clips(1, frames)).shape == (1, 32)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("vid_proj.0.bias", None, "missing .*vid_proj"),
        ("video_model.head.weight", torch.zeros(1), "unexpected .*video_model.head"),
        ("video_model.pos_embed", torch.zeros(1, 5, 48), r"pos_embed is \[1, 5, 48\]"),
        ("video_model.temporal_embed", None, "missing .*temporal_embed"),
    ],
)
def test_a_checkpoint_must_fit(
    name: str, change: torch.Tensor | None, message: str, published: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    published.pop(name, None)
    if change is not None:
        published[name] = change
    with pytest.raises(StoreError, match=message):
        load(SPACEWALK, _saved(published, tmp_path))


def test_vectors_depend_on_their_clip_alone(published: dict[str, torch.Tensor], tmp_path: Path) -> None:
    files = _with_tokenizer(_saved(published, tmp_path))
    tower = load(SPACEWALK, files)
    with torch.inference_mode():
        alone = torch.cat([tower(clip[None]) for clip in _clips(3)])
        torch.testing.assert_close(tower(_clips(3)), alone, rtol=1e-5, atol=1e-5)

    assert tower.to("meta")(_clips().to("meta")).shape == (2, 32), "nothing is bound to the CPU"
    with torch.inference_mode():
        lengths = load(replace(SPACEWALK, normalise=True), files)(_clips()).norm(dim=1)
    torch.testing.assert_close(lengths, torch.ones(2))
    encoder = load_text(replace(TOWERS[0], normalise=True), files)
    assert np.linalg.norm(encoder.encode([2, 4, 3])) == pytest.approx(1, abs=1e-6)


def test_texts_are_cut_and_not_padded_by_the_networks_own_tokenizer(
    published: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    files = _with_tokenizer(_saved(published, tmp_path))
    encoder = load_text(TOWERS[0], files)
    assert encoder.tokens("Open the HATCHES") == [2, 4, 5, 6, 7, 3]
    assert len(encoder.tokens("open " * 600)) == 512
    assert encoder.tokens("") == [2, 3]
    short = load_text(replace(TOWERS[0], max_tokens=4), files)
    assert short.tokens("Open the hatches") == [2, 4, 5, 3]
    held = json.loads(files[TOKENIZER].read_text())
    del held["model"]["vocab"]["w491"]
    files[TOKENIZER].write_text(json.dumps(held))
    with pytest.raises(StoreError, match="has 499 tokens, the network 500"):
        load_text(TOWERS[0], files)


def test_the_files_are_a_checkpoint_and_a_tokenizer() -> None:
    for spec in (SPACEWALK, NLQ, FROZEN, *TOWERS):
        names = [file.name for name in spec.weights for file in WEIGHTS[name].files]
        assert len(names) == 2
        assert TOKENIZER in names


def test_frozen_in_time_is_the_same_network_with_weights_of_its_own(
    published: dict[str, torch.Tensor], tmp_path: Path
) -> None:
    ((name, path),) = _saved(published, tmp_path).items()
    files = {WEIGHTS["frozen-in-time"].files[0].name: path}
    with torch.inference_mode():
        torch.testing.assert_close(load(FROZEN, files)(_clips(1, 4)), load(NLQ, {name: path})(_clips(1, 4)))
    assert FROZEN.weights == TOWERS[1].weights == ("frozen-in-time",)


def test_presets_are_sampled_as_published() -> None:
    assert (SPACEWALK.placement, SPACEWALK.num_frames) == ("middles", 4)
    assert NLQ.hop / NLQ.fps == pytest.approx(1 / 1.87)

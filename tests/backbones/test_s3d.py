"""S3D: the reference's outputs, what each mistake would do to them, and how the files are loaded."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch

from stepline.backbones import s3d
from stepline.backbones.presets.s3d import PRESETS, TOWERS
from stepline.errors import StoreError
from tests import parity as recipe
from tests.parity import TOLERANCE, read_golden
from tests.parity import s3d as reference

PRESET = {spec.name: spec for spec in PRESETS}
MIXED, EMBEDDING = PRESET["s3d-htstep"], PRESET["s3d-oepp"]
CASE = "v16_200/"


def video(change: Callable[[Any], Any]) -> Callable[[pytest.MonkeyPatch], None]:
    def apply(monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(reference, "video01", lambda *made: np.ascontiguousarray(change(recipe.video01(*made))))

    return apply


def norms(change: Callable[[Any], object]) -> Callable[[pytest.MonkeyPatch], None]:
    def apply(monkeypatch: pytest.MonkeyPatch) -> None:
        def changed(network: s3d.S3D) -> s3d.S3D:
            for module in network.modules():
                if isinstance(module, torch.nn.BatchNorm3d):
                    change(module)
            return s3d.folded(network)

        monkeypatch.setattr(reference, "folded", changed)

    return apply


def floor_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    def pool(x: Any, kernel: s3d.Kernel, stride: s3d.Kernel) -> Any:
        after = [size - step for size, step in zip(kernel[::-1], stride[::-1], strict=True)]
        padded = torch.nn.functional.pad(x, (0, after[0], 0, after[1], 0, after[2]))
        return torch.nn.functional.max_pool3d(padded, kernel, stride)

    monkeypatch.setattr(s3d, "pool", pool)


MISTAKES = {
    "bgr": video(lambda clips: clips[:, ::-1]),
    "time_reversed": video(lambda clips: clips[:, :, ::-1]),
    "hflip": video(lambda clips: clips[..., ::-1]),
    "0..255 range": video(lambda clips: clips * np.float32(255)),
    "bn eps 1e-3": norms(lambda norm: setattr(norm, "eps", 1e-3)),
    "bn bias zero": norms(lambda norm: torch.nn.init.zeros_(norm.bias)),
    "floor maxpool": floor_pool,
}


@pytest.fixture(scope="module")
def weights(parity: Path) -> dict[str, Any]:
    manifest = json.loads((parity / "s3d/manifest.json").read_text())
    return recipe.weights(manifest["keys"], manifest["digest_sha256"])


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_seen(
    mistake: str, weights: dict[str, Any], parity: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = parity / "s3d"
    manifest, listed = (json.loads((folder / f"{name}.json").read_text()) for name in ("manifest", "mutations"))
    assert listed.keys() == MISTAKES.keys()
    monkeypatch.setattr(reference, "weights", lambda *_: {key: array.copy() for key, array in weights.items()})
    MISTAKES[mistake](monkeypatch)
    shown = read_golden(folder / "golden_a.npz")
    golden = {name: array for name, array in shown.items() if name.startswith((CASE, "recipe_json"))}
    found = {output.name: output.error for output in reference.outputs(manifest, golden, folder)}
    error = found[f"{CASE}video_embedding"]
    assert error > TOLERANCE
    assert error == pytest.approx(listed[mistake], rel=1e-3)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A checkpoint and a dictionary in the published form, of random weights."""
    folder = tmp_path_factory.mktemp("s3d")
    torch.manual_seed(0)
    network = s3d.S3D("mixed_5c")
    for name, tensor in network.state_dict().items():
        if name.endswith(("running_mean", "running_var")):
            tensor.uniform_(0.5, 1.5)
    torch.save(network.state_dict(), folder / "s3d_howto100m.pth")
    np.save(folder / "s3d_dict.npy", np.array([f"word{number}" for number in range(1, s3d.WORDS + 1)]))
    return {name: folder / name for name in ("s3d_howto100m.pth", "s3d_dict.npy")}


@pytest.fixture
def clips() -> Any:
    return torch.rand(2, 3, 4, 64, 48, generator=torch.Generator().manual_seed(0))


def test_folding_changes_no_value_and_leaves_no_norm(files: dict[str, Path], clips: Any) -> None:
    plain = s3d.S3D("mixed_5c").eval().requires_grad_(False)
    plain.load_state_dict(torch.load(files["s3d_howto100m.pth"]))
    network = s3d.load(MIXED, files)
    assert not [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm3d)]
    assert {parameter.dtype for parameter in network.parameters()} == {torch.float32}
    weight = network.conv_2c.get_submodule("conv1").weight
    assert weight.is_contiguous(memory_format=torch.channels_last_3d)
    torch.testing.assert_close(network(clips), plain(clips), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(network(clips)[1:], network(clips[1:]), rtol=1e-5, atol=1e-6)


def test_the_spec_says_which_layer_and_whether_it_is_normalised(files: dict[str, Path], clips: Any) -> None:
    mixed, embedding = s3d.load(MIXED, files), s3d.load(EMBEDDING, files)
    assert mixed(clips).shape == (2, MIXED.dimension)
    assert embedding(clips).shape == (2, EMBEDDING.dimension)
    torch.testing.assert_close(embedding(clips), embedding.fc(mixed(clips)))
    unit = s3d.load(replace(EMBEDDING, normalise=True), files)(clips)
    torch.testing.assert_close(unit, embedding(clips) / embedding(clips).norm(dim=1, keepdim=True))


@pytest.mark.parametrize("shape", [(1, 3, 16, 64, 64), (2, 3, 16, 96, 64)])
def test_channels_stay_last_in_every_layer(shape: tuple[int, ...], files: dict[str, Path]) -> None:
    network, layouts = s3d.load(MIXED, files), {}
    for name, module in network.named_modules():
        module.register_forward_hook(lambda _, __, made, name=name: layouts.update({name: made}))
    network(torch.rand(shape))
    held = {name: made.movedim(1, -1).is_contiguous() for name, made in layouts.items() if made.dim() == 5}
    assert held["mixed_5c"]
    assert all(held.values())


@pytest.mark.parametrize(("kernel", "stride"), [((3, 3, 3), (1, 1, 1)), ((1, 3, 3), (1, 2, 2)), ((2, 2, 2), (2, 2, 2))])
@pytest.mark.parametrize("size", [(4, 6, 7), (1, 2, 3), (5, 5, 5)])
def test_maxima_are_those_of_windows_in_three_dimensions(
    kernel: s3d.Kernel, stride: s3d.Kernel, size: tuple[int, int, int]
) -> None:
    x = torch.randn(2, 5, *size, generator=torch.Generator().manual_seed(0))
    padding = tuple(length // 2 if step == 1 else 0 for length, step in zip(kernel, stride, strict=True))
    wanted = torch.nn.functional.max_pool3d(x, kernel, stride, padding, ceil_mode=True)
    made = s3d.maxima(x, kernel, stride)
    assert torch.equal(made[:, :, : wanted.shape[2], : wanted.shape[3], : wanted.shape[4]], wanted)


def test_offsets_go_before_colours() -> None:
    clips = torch.zeros(1, 3, 2, 2, 2)
    clips[0, 2, 1, 0, 1] = 1
    assert s3d.space_to_depth(clips).flatten().nonzero().item() == (1 * 4 + 0 * 2 + 1) * 3 + 2


def test_a_file_without_the_text_tower_is_one_line(files: dict[str, Path], tmp_path: Path) -> None:
    held = torch.load(files["s3d_howto100m.pth"])
    torch.save({name: each for name, each in held.items() if not name.startswith("text_")}, tmp_path / "half.pth")
    with pytest.raises(StoreError, match="half.pth is not s3d: 5 missing"):
        s3d.load(MIXED, files | {"s3d_howto100m.pth": tmp_path / "half.pth"})


def test_known_words_are_numbered_from_one_and_filled_up_with_zeros(files: dict[str, Path]) -> None:
    encoder = s3d.load_text(TOWERS[0], files)
    assert encoder.tokens("Word2, unknown WORD66249!") == [2, 66249, *[0] * 14]
    assert encoder.tokens("") == encoder.tokens("unknown") == [0] * 16
    assert encoder.tokens(" ".join(f"word{number}" for number in range(1, 30))) == [*range(1, 17)]
    assert encoder.encode(encoder.tokens("word1")).shape == (512,)
    alone, filled = encoder.encode([7] * 16), encoder.encode([7, *[0] * 15])
    assert not np.allclose(alone, filled), "word zero takes part in the maximum"
    np.testing.assert_allclose(filled, encoder.encode([0, 7] * 8), rtol=1e-5, atol=1e-6)


def test_tan_reads_32_words_and_masks_padding_and_unknown_ones(files: dict[str, Path]) -> None:
    encoder = s3d.load_text(TOWERS[1], files)
    assert encoder.tokens("Word2, unknown WORD66249!") == [2, 0, 66249, *[0] * 29]
    assert encoder.tokens(" ".join(f"word{number}" for number in range(1, 50))) == [*range(1, 33)]
    np.testing.assert_allclose(encoder.encode([7, *[0] * 31]), encoder.encode([7] * 32), rtol=1e-5, atol=1e-6)


def test_masked_words_have_no_part_in_the_maximum_but_in_a_text_of_no_other() -> None:
    torch.manual_seed(0)
    tower = s3d.WordVectors(9, 4, 6, 3)
    tokens = torch.tensor([[7, 0, 3], [0, 0, 0]])
    masked, plain = tower(tokens, masked=True), tower(tokens)
    torch.testing.assert_close(masked[:1], tower(torch.tensor([[7, 3]])))
    torch.testing.assert_close(masked[1], plain[1])
    assert not torch.allclose(masked[0], plain[0])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (np.array(["word"]), "does not have the 66249 words"),
        (np.zeros(s3d.WORDS), "does not have the 66249 words"),
        (np.array([{"a": 1}], dtype=object), "is not a word dictionary"),
        (np.full(s3d.WORDS, 1 << 30, "<i4").view("<U1"), "is not a word dictionary"),
    ],
)
def test_another_dictionary_is_one_line(words: Any, message: str, files: dict[str, Path], tmp_path: Path) -> None:
    np.save(tmp_path / "s3d_dict.npy", words, allow_pickle=True)
    with pytest.raises(StoreError, match=message):
        s3d.load_text(TOWERS[0], files | {"s3d_dict.npy": tmp_path / "s3d_dict.npy"})


def test_presets_differ_from_what_was_released_in_frames_and_pictures_only() -> None:
    for name in ("s3d-htstep", "s3d-oepp", "s3d-dropdtw", "s3d-mmpt"):
        exact, released = PRESET[name], PRESET[f"{name}-as-released"]
        assert (exact.frame_rule, released.frame_rule) == ("at_or_before", "ffmpeg_near")
        same = replace(released, name=exact.name, frame_rule=exact.frame_rule)
        assert replace(same, steps=tuple(step for step in same.steps if step != ("jpeg", 95))) == exact


def test_a_preset_has_the_papers_rate() -> None:
    rates = {"s3d-htstep": (1, 1024), "s3d-dropdtw": (3.2, 512)}
    for name in ("s3d-htstep", "s3d-oepp", "s3d-dropdtw", "s3d-mmpt", "s3d-pss"):
        spec, (hop_s, dimension) = PRESET[name], rates.get(name, (1, 512))
        assert (spec.hop / spec.fps, spec.num_frames / spec.fps, spec.dimension) == (hop_s, hop_s, dimension)

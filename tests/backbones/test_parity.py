"""The recipe, the verb `backbone check` and its exit codes."""

import hashlib
import json
import runpy
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from importlib import import_module
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from stepline.backbones import parity as recipe
from stepline.backbones import s3d
from stepline.backbones.parity import Anchor, Output
from stepline.backbones.parity import s3d as s3d_parity
from stepline.cli import main
from stepline.cli import parity as verbs
from stepline.cli.parity import PACKAGES
from stepline.errors import StoreError

ONE = np.ones(4, np.float32)


def test_weights_and_inputs_are_the_recipes(parity: Path) -> None:
    reference = runpy.run_path(str(parity / "recipe.py"))
    keys = json.loads((parity / "timesformer/manifest.json").read_text())["configs"]["tiny"]
    made = recipe.weights(keys["keys"], keys["digest_sha256"])
    for key, (shape, _, rule, *scale) in keys["keys"].items():
        assert np.array_equal(made[key], reference["value"](key, shape, rule, *scale)), key
    for rule in ("norm_weight", "running_mean", "running_var", "bias", "zero"):
        expected = reference["value"]("a.b", (3, 2), rule)
        sha256 = reference["hashlib"].sha256(b"a.b" + expected.tobytes()).hexdigest()
        assert np.array_equal(recipe.weights({"a.b": [[3, 2], "", rule]}, sha256)["a.b"], expected)
    clips = recipe.video01("x/b/1", (2, 3, 6, 40, 36))
    assert np.array_equal(clips, reference["video01"]("x/b/1", 2, 6, 40, 36))
    assert recipe.video01("x/b/1", (2, 3, 6, 40, 36), reference["sha"](clips)) is not None


def test_other_weights_or_inputs_than_the_files_say_are_errors() -> None:
    with pytest.raises(StoreError, match="the recipe's weights do not match the manifest's digest_sha256"):
        recipe.weights({"a": [[2], "float32", "bias"]}, "0" * 64)
    with pytest.raises(StoreError, match="rule 'ones' of a is unknown"):
        recipe.weights({"a": [[2], "float32", "ones"]}, "0" * 64)
    with pytest.raises(StoreError, match="the recipe's input x differs from the golden file's"):
        recipe.video01("x", (1, 3, 2, 4, 4), "0" * 64)


def test_weights_can_be_tied_and_added_to() -> None:
    expected = recipe.weight("b", (3,), "bias")
    expected[1] += np.float32(14)
    sha256 = hashlib.sha256(b"a" + expected.tobytes() + b"b" + expected.tobytes()).hexdigest()
    keys = {"a": [[3], "float32", "tied", "b"], "b": [[3], "float32", "bias"]}
    made = recipe.weights(keys, sha256, {"b": [[1, 14.0]]})
    assert made["a"] is made["b"]
    assert np.array_equal(made["b"], expected)


def test_constant_buffers_are_left_out() -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert recipe.weights({"position_ids": [[1, 512], "int64", "keep"]}, empty) == {}


@pytest.mark.parametrize(
    ("ours", "error"),
    [
        (ONE, 0),
        (ONE * 1.5, 0.5),
        (ONE[:2], np.inf),
        (ONE * np.nan, np.inf),
        (ONE * np.float32([1, 1, 1, np.inf]), np.inf),
    ],
)
def test_an_outputs_error_is_relative(ours: Any, error: float) -> None:
    assert Output("x", ours, ONE).error == error


def test_of_whole_numbers_none_may_differ() -> None:
    four = np.full(4, 4)
    assert Output("x", four, four).agrees
    assert not Output("x", np.array([4, 4, 4, 5]), four, tolerance=1).agrees


def test_what_is_not_a_number_is_so_in_both() -> None:
    """As the mean overlap of the pairs of a single segment."""
    nan = np.array([1.0, np.nan], np.float32)
    assert Output("x", nan, nan).agrees
    assert not Output("x", nan[::-1], nan).agrees
    assert not Output("x", ONE[:2], nan).agrees


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Files and a model whose one output has the given values; the command that compares them with 1."""

    def write(ours: Any = ONE, anchors: Callable[[Path], Iterator[Anchor]] | None = None) -> list[str]:
        (tmp_path / "manifest.json").write_text("{}")
        np.savez(tmp_path / "golden.npz", **{"case/out": ONE, "case/vmask": ONE, "recipe_json": "{}"})
        made = SimpleNamespace(outputs=lambda *_: iter([Output("case/out", ours, ONE)]))
        if anchors is not None:
            made.anchors = anchors
        monkeypatch.setitem(sys.modules, "stepline.backbones.parity.s3d", made)
        return ["backbone", "check", "s3d", "--manifest", "manifest.json", "--golden", "golden.npz"]

    return write


def test_the_verb_prints_every_error_and_a_verdict(files: Callable[..., list[str]], capsys: Any) -> None:
    assert main(files(ONE * np.float32(1 + 4e-6))) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split() == ["case/out", "4.05e-06", "of", "1.0e-05"]
    assert out[1] == "s3d matches the reference: relative L2 error at most 4.05e-06 of 1.0e-05"


@pytest.mark.parametrize("ours", [ONE * np.float32(1 + 2e-5), ONE * np.nan, ONE[:2]])
def test_an_error_above_the_tolerance_is_exit_code_1(ours: Any, files: Callable[..., list[str]], capsys: Any) -> None:
    assert main(files(ours)) == 1
    printed = capsys.readouterr()
    assert printed.out.splitlines()[0].endswith(" !")
    assert printed.err == "error: s3d differs from the reference: 1 of 1 outputs, such as case/out\n"


def test_an_output_that_nothing_is_compared_with_is_an_error(files: Callable[..., list[str]], capsys: Any) -> None:
    arguments = files()
    np.savez("golden.npz", **{"case/out": ONE, "case/other": ONE})
    assert main(arguments) == 2
    assert capsys.readouterr().err == "error: golden.npz contains outputs that s3d does not have: case/other\n"
    np.savez("golden.npz", recipe_json="{}")
    assert main(arguments) == 2
    assert capsys.readouterr().err == "error: golden.npz contains no outputs: use the golden file of s3d\n"


def command(name: str, manifest: Path, golden: Path) -> list[str]:
    return ["backbone", "check", name, "--manifest", str(manifest), "--golden", str(golden)]


def test_what_is_wrong_with_a_file_is_one_line(parity: Path, tmp_path: Path, capsys: Any) -> None:
    clip, other = parity / "videoclip", parity / "s3d"
    whole = (clip / "golden_a.npz").read_bytes()
    for name, content in {
        "empty.npz": b"",
        "half.npz": whole[: len(whole) // 2],
        "text.npz": b"not an archive",
        "page.npz": b"<!DOCTYPE html>",
        "bad.npz": whole[:20000] + b"\0" * 20000 + whole[40000:],
        "bad.json": b'{"configs":',
        "list.json": b"[]",
    }.items():
        (tmp_path / name).write_bytes(content)
    np.save("one.npy", ONE)
    for name, method in {"header.npz": zipfile.ZIP_DEFLATED, "packed.npz": zipfile.ZIP_BZIP2}.items():
        with zipfile.ZipFile(name, "w", method) as archive:
            archive.writestr("a.npy", b"\x93NUMPY\1\0\xf0\x0f" + b"(" * 4080)
    with zipfile.ZipFile("large.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        np.lib.format.write_array(member := BytesIO(), np.zeros(1 << 20))
        for number in range(33):
            archive.writestr(f"{number}.npy", member.getvalue())
    cases = {
        **{
            ("videoclip", clip / "manifest.json", tmp_path / name): f"{name} is damaged or contains no arrays"
            for name in ("header.npz", "packed.npz", "large.npz")
        },
        (
            "clip",
            clip / "manifest.json",
            clip / "golden_a.npz",
        ): "'clip' has no parity check; choose from s3d,",
        ("videoclip", tmp_path / "no.json", clip / "golden_a.npz"): "no.json does not exist",
        ("videoclip", clip / "manifest.json", tmp_path / "no.npz"): "no.npz does not exist",
        ("videoclip", clip / "manifest.json", tmp_path / "empty.npz"): "empty.npz is damaged or contains no arrays",
        ("videoclip", clip / "manifest.json", tmp_path / "half.npz"): "half.npz is damaged or contains no arrays",
        ("videoclip", clip / "manifest.json", tmp_path / "text.npz"): "text.npz is damaged or contains no arrays",
        (
            "videoclip",
            clip / "manifest.json",
            tmp_path / "page.npz",
        ): "page.npz is damaged or contains no arrays: down",
        ("videoclip", clip / "manifest.json", tmp_path / "bad.npz"): "bad.npz is damaged or contains no arrays",
        ("videoclip", clip / "manifest.json", tmp_path / "one.npy"): "one.npy is damaged or contains no arrays",
        (
            "videoclip",
            tmp_path / "bad.json",
            clip / "golden_a.npz",
        ): "bad.json is not a JSON manifest of weights: use the manifest of videoclip",
        ("videoclip", tmp_path / "list.json", clip / "golden_a.npz"): "are not both for videoclip",
        ("videoclip", other / "manifest.json", clip / "golden_a.npz"): "are not both for videoclip",
        (
            "videoclip",
            clip / "manifest.json",
            other / "golden_a.npz",
        ): "contains outputs that videoclip does not have",
        ("s3d", clip / "manifest.json", other / "golden_a.npz"): "are not both for s3d",
        ("s3d", other / "manifest.json", clip / "golden_a.npz"): "are not both for s3d",
    }
    for arguments, message in cases.items():
        assert main(command(*arguments)) == 2, arguments
        lines = capsys.readouterr().err.splitlines()
        assert len(lines) == 1, arguments
        assert message in lines[0], arguments
        assert not any(leak in lines[0] for leak in ("allow_pickle", "Error(")), lines


def test_another_manifests_weights_are_one_line(parity: Path, tmp_path: Path, capsys: Any) -> None:
    folder = parity / "videoclip"
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["configs"]["full"]
    manifest["configs"]["tiny"]["digest_sha256"] = "0" * 64
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    assert main(command("videoclip", tmp_path / "manifest.json", folder / "golden_a.npz")) == 2
    assert capsys.readouterr().err == "error: the recipe's weights do not match the manifest's digest_sha256\n"


@pytest.mark.parametrize("what", PACKAGES)
def test_every_model_has_a_check(what: str) -> None:
    for name in verbs.CHECKED[what]:
        module = import_module(f"{PACKAGES[what]}.{name}")
        assert callable(module.outputs)
        assert hasattr(module, "anchors") == (name in ("s3d", "videoclip", "eva_clip"))


def test_anchors_follow_the_outputs(files: Callable[..., list[str]], capsys: Any) -> None:
    near = Anchor("a", 1e-5, 1e-4), Anchor("b", 1e-3, 1e-2)
    assert main([*files(anchors=lambda _: iter(near)), "--anchors", "public"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split() for line in out[2:4]] == [
        ["a", "1.00e-05", "of", "1.0e-04"],
        ["b", "1.00e-03", "of", "1.0e-02"],
    ]
    assert out[4] == "s3d with these weights reproduces the published outputs"
    for error in (2e-4, float("nan")):
        far = Anchor("a", error, 1e-4), Anchor("b", 0, 0)
        assert main([*files(anchors=lambda _, far=far: iter(far)), "--anchors", "public"]) == 1
        assert capsys.readouterr().err == "error: s3d with these weights does not reproduce the published outputs a\n"
    assert main([*files(), "--anchors", "public"]) == 2
    assert "no outputs of s3d with its real weights are public: omit --anchors" in capsys.readouterr().err


def test_absent_weights_are_one_line_that_says_what_to_run(files: Callable[..., list[str]], capsys: Any) -> None:
    arguments = files(anchors=s3d_parity.anchors)
    assert main([*arguments, "--anchors", "public"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert "weights s3d are absent: run `stepline fetch weights/s3d`" in lines[0]


def test_anchors_are_computed_with_the_weights_at_hand(parity: Path, tmp_path: Path) -> None:
    weights, public = Path("weights/s3d"), tmp_path / "public"
    weights.mkdir(parents=True)
    public.mkdir()
    torch.manual_seed(0)
    network = s3d.S3D("video_embedding")
    torch.save(network.state_dict(), weights / "s3d_howto100m.pth")
    shutil.copyfile(parity / "s3d/synthetic_dict.npy", weights / "s3d_dict.npy")
    texts, ids = np.array(["open door", "cut the tomato"]), torch.tensor([[1, 2, *[0] * 14], [3, 5, 4, *[0] * 13]])
    with torch.inference_mode():
        vectors = network.text_module(ids).numpy()
    np.savez(public / "s3d_text_real_weights_coin_steps.npz", text=texts, embedding=vectors)
    np.savez(public / "oepp_text_real_weights.npz", text=texts[:1], s3d_text_512=vectors[:1] + np.float32(3e-4))
    coin, oepp = recipe.anchors("s3d", public)
    assert (coin.name, oepp.name) == (
        "s3d_text_real_weights_coin_steps/embedding",
        "oepp_text_real_weights/s3d_text_512",
    )
    assert coin.error <= 1e-5 < coin.allowed == oepp.allowed == 1e-4
    assert oepp.error == pytest.approx(3e-4, rel=0.05)

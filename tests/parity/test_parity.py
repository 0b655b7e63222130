"""The recipe, the comparison of every network with the shown outputs of its reference, and its exit codes."""

import csv
import hashlib
import json
import re
import runpy
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from stepline.backbones import s3d
from tests import parity as recipe
from tests.conftest import ROOT
from tests.parity import NETWORKS, Output, deviation, read_golden
from tests.parity import s3d as s3d_parity
from tests.parity.__main__ import main

ONE = np.ones(4, np.float32)
with (ROOT / "docs/parity.csv").open(newline="", encoding="utf-8") as file:
    SHOWN = {row["network"]: (int(row["outputs"]), float(row["error"])) for row in csv.DictReader(file)}
"""The number of shown outputs of each network, and an error that none of them exceeds, as the ledger's page states."""
CHANGES = {
    "actionformer": (
        "in/small|w5_relpe/|nms/n40/|recipe_json",
        ("", ""),
        ("w5_relpe/loss", *(f"nms/n40/{each}" for each in ("soft_multi/segments", "hard_agn_.5_vote.75/scores"))),
    ),
    "pdvc": (
        "tiny_v1/(?!cpu/|zeros/|gpu_gt_proposals/)",
        ("tiny_v1", "tiny_other"),
        ("tiny_other/gpu/layer1/boxes", "tiny_other/gpu/layer0/matched_query", "tiny_other/gpu/greedy/tokens"),
    ),
    **{
        name: (f"{kept}|recipe_json", ("", ""), (output,))
        for name, kept, output in (
            ("timesformer", "tiny_4x64/", "tiny_4x64/token_mean"),
            ("internvideo", "tiny_t16/", "tiny_t16/video_embed"),
            ("eva_clip", "tiny/text_embed", "tiny/text_embed"),
            ("egovlp", "tiny", "tiny/text_embed"),
            ("videoclip", "tiny/", "tiny/v8/hidden"),
        )
    },
    "tan": ("(in|loss|e2d3_interp64)/", ("", ""), ("loss/dual_joint_total",)),
    "umt": (
        "(?!single)",
        ("long/", "other/"),
        ("other/offset", "targets_unit2/window", "loss_unit2", "batch/moments_unit1", "batch/saliency"),
    ),
}
"""Of a network: what is kept of its golden file, how names in it change, and outputs whose change must be seen."""


def words(name: str, manifest: Path, golden: Path) -> list[str]:
    return [name, "--manifest", str(manifest), "--golden", str(golden)]


def shown(name: str, parity: Path) -> tuple[Path, Path]:
    folder = parity / name.replace("eva_clip", "evaclip")
    return folder / "manifest.json", folder / "golden_a.npz"


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
    with pytest.raises(ValueError, match="the recipe's weights do not match the manifest's digest_sha256"):
        recipe.weights({"a": [[2], "float32", "bias"]}, "0" * 64)
    with pytest.raises(ValueError, match="rule 'ones' of a is unknown"):
        recipe.weights({"a": [[2], "float32", "ones"]}, "0" * 64)
    with pytest.raises(ValueError, match="the recipe's input x differs from the golden file's"):
        recipe.clips({"name": "x", "shape": (1, 3, 4, 4), "sha256": "0" * 64}, [0.5] * 3, [1] * 3)


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
    assert Output("x", ours, ONE, tolerance=np.inf).agrees == np.isfinite(error)


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


@pytest.mark.parametrize(
    "name",
    [
        name if name in ("actionformer", "tan", "umt") else pytest.param(name, marks=pytest.mark.slow)
        for name in NETWORKS
    ],
)
def test_every_output_is_the_references(name: str, parity: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words(name, *shown(name, parity))) == 0
    errors = [float(line.split()[1]) for line in capsys.readouterr().out.splitlines()[:-1]]
    n, largest = SHOWN[name]
    assert len(errors) == n
    assert max(errors) <= largest


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_output_is_seen(name: str, parity: Path) -> None:
    """Also of other cases than the shown ones."""
    pattern, rename, changed = CHANGES[name]
    manifest, golden = shown(name, parity)
    kept = {each.replace(*rename): array for each, array in read_golden(golden).items() if re.match(pattern, each)}
    np.savez("golden.npz", **kept)
    assert main(words(name, manifest, Path("golden.npz"))) == 0
    for each in changed:
        array = kept[each].copy()
        array.flat[array.size // 4] += 0.01 if array.dtype.kind == "f" else 1
        np.savez("golden.npz", **kept | {each: array})
        assert main(words(name, manifest, Path("golden.npz"))) == 1, each


def test_outputs_are_asked_for_by_their_names(parity: Path) -> None:
    """Positions interpolated from another number, and the gradient of another weight, need no line in TAN's module."""
    manifest, golden = shown("tan", parity)
    kept = {name: array for name, array in read_golden(golden).items() if re.match(CHANGES["tan"][0], name)}
    np.savez("renamed.npz", **{name.replace("interp64", "interp32"): array for name, array in kept.items()})
    assert main(words("tan", manifest, Path("renamed.npz"))) == 1
    np.savez("more.npz", **kept, **{"loss/grad/mlp.weight": np.zeros((64, 64), np.float32)})
    assert main(words("tan", manifest, Path("more.npz"))) == 2


@pytest.mark.parametrize("name", NETWORKS)
def test_another_networks_files_cannot_be_compared(name: str, parity: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = "tan" if name == "umt" else "umt"
    (ours, golden), (theirs, other_golden) = shown(name, parity), shown(other, parity)
    for files in ((ours, other_golden), (theirs, golden)):
        assert main(words(name, *files)) == 2
        assert f"{name} cannot be compared: " in capsys.readouterr().err


def test_broken_files_cannot_be_compared(parity: Path) -> None:
    manifest, golden = shown("umt", parity)
    Path("cut.npz").write_bytes(golden.read_bytes()[:9000])
    Path("bad.json").write_text('{"configs":')
    np.save("one.npy", ONE)
    described = json.loads(manifest.read_text())
    described["configs"]["tiny"]["digest_sha256"] = "0" * 64
    Path("other.json").write_text(json.dumps(described))
    for files in (
        *((manifest, Path(name)) for name in ("no.npz", "cut.npz", "one.npy")),
        *((Path(name), golden) for name in ("no.json", "bad.json", "other.json")),
    ):
        assert main(words("umt", *files)) == 2, files
    with pytest.raises(SystemExit) as stopped:
        main(words("clip", manifest, golden))
    assert stopped.value.code == 2


@pytest.fixture
def files(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Files and a network whose one output has the given values; the words that compare them with 1."""

    def write(ours: Any = ONE, anchors: Callable[[Path], Iterator[Output]] | None = None) -> list[str]:
        Path("manifest.json").write_text("{}")
        np.savez("golden.npz", **{"case/out": ONE, "case/vmask": ONE, "recipe_json": "{}"})
        made = SimpleNamespace(outputs=lambda *_: iter([Output("case/out", ours, ONE)]))
        if anchors is not None:
            made.anchors = anchors
        monkeypatch.setitem(sys.modules, "tests.parity.s3d", made)
        return words("s3d", Path("manifest.json"), Path("golden.npz"))

    return write


def test_every_error_and_a_verdict_are_printed(files: Callable[..., list[str]], capsys: Any) -> None:
    given = files(ONE * np.float32(1 + 4e-6))
    assert main(given) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0].split() == ["case/out", "4.05e-06", "of", "1.0e-05"]
    assert out[1] == "s3d matches the reference: error at most 4.05e-06 of 1.0e-05"
    assert main([*given, "--tolerance", "4e-6"]) == 1
    assert capsys.readouterr().out.splitlines()[0].split() == ["case/out", "4.05e-06", "of", "4.0e-06", "!"]


@pytest.mark.parametrize("ours", [ONE * np.float32(1 + 2e-5), ONE * np.nan, ONE[:2]])
def test_an_error_above_the_tolerance_is_exit_code_1(ours: Any, files: Callable[..., list[str]], capsys: Any) -> None:
    assert main(files(ours)) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[0].endswith(" !")
    assert out[1] == "s3d differs from the reference in 1 of 1 outputs, such as case/out"


def test_an_output_that_nothing_is_compared_with_is_an_error(files: Callable[..., list[str]], capsys: Any) -> None:
    given = files()
    np.savez("golden.npz", **{"case/out": ONE, "case/other": ONE})
    assert main(given) == 2
    assert capsys.readouterr().err.endswith("golden.npz has outputs that s3d does not have: case/other\n")
    np.savez("golden.npz", recipe_json="{}")
    assert main(given) == 2
    assert capsys.readouterr().err.endswith("golden.npz has no outputs\n")


def test_anchors_follow_the_outputs(files: Callable[..., list[str]], capsys: Any) -> None:
    near = deviation("a", 1e-5, 1e-4), deviation("b", 1e-3, 1e-2)
    assert main([*files(anchors=lambda _: iter(near)), "--anchors", "public"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert [line.split() for line in out[1:3]] == [
        ["a", "1.00e-05", "of", "1.0e-04"],
        ["b", "1.00e-03", "of", "1.0e-02"],
    ]
    for error in (2e-4, float("nan")):
        far = deviation("a", error, 1e-4), deviation("b", 0, 0)
        assert main([*files(anchors=lambda _, far=far: iter(far)), "--anchors", "public"]) == 1
        assert capsys.readouterr().out.endswith("s3d differs from the reference in 1 of 3 outputs, such as a\n")
    assert main([*files(), "--anchors", "public"]) == 2


def test_absent_weights_are_an_error_that_says_what_to_run(files: Callable[..., list[str]], capsys: Any) -> None:
    assert main([*files(anchors=s3d_parity.anchors), "--anchors", "public"]) == 2
    assert "weights s3d are absent: run `stepline fetch weights/s3d`" in capsys.readouterr().err


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
    coin, oepp = s3d_parity.anchors(public)
    assert (coin.name, oepp.name) == (
        "s3d_text_real_weights_coin_steps/embedding",
        "oepp_text_real_weights/s3d_text_512",
    )
    assert coin.error <= 1e-5 < coin.allowed == oepp.allowed == 1e-4
    assert oepp.error == pytest.approx(3e-4, rel=0.05)

"""`stepline weights`, with weights that hold next to nothing."""

import os
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepline import cli, models
from stepline.backbones import registry
from stepline.backbones import weights as module
from stepline.backbones.weights import WEIGHTS, File
from stepline.cli import weights as verbs
from stepline.errors import StoreError
from stepline.io import sha256_file, write_json
from stepline.metrics.step_captions import SCORERS


def fill(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True)
    for file in WEIGHTS[name].files:
        (folder / file.name).write_bytes(b"x" * 12)
    return folder


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[str], str]:
    code = cli.main(["weights", *arguments])
    said = capsys.readouterr()
    return code, said.out.splitlines(), said.err


def test_the_list_says_what_is_where_and_why_it_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    mirror = tmp_path / "mirror"
    fill(mirror / "weights/s3d", "s3d")
    monkeypatch.setenv("STEPLINE_MIRROR", str(mirror))
    fetched = fill(Path("weights/timesformer"), "timesformer")
    write_json(fetched / "sha256.json", {file.name: "0" * 64 for file in WEIGHTS["timesformer"].files})
    code, lines, _ = run(capsys, "list")
    rows = {tuple(line.split()[:2]): line for line in lines}
    assert code == 0
    assert len(lines) == 1 + sum(len(weights.files) for weights in WEIGHTS.values())
    assert " 12 " in rows["s3d", "s3d_dict.npy"]
    assert " mirror  as supplied  none stated " in rows["s3d", "s3d_dict.npy"]
    line = rows["timesformer", "TimeSformer_divST_8x32_224_HowTo100M_pretrained.pth"]
    assert " here    first use " in line
    assert line.split()[-2:] == ["CC-BY-NC-SA-3.0", "https://github.com/facebookresearch/video-distant-supervision"]
    assert " 2273012515  absent  pinned " in rows["eva_clip", "eva_clip_psz14.pt"]
    assert "egovlp" in rows["egovlp", "EgoVLP_PT_BEST.pth"]


def test_get_is_fetch_and_without_any_nothing_is_wrong(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "check") == (0, ["no weights found: `stepline weights list` lists them"], "")
    asked: list[str] = []
    monkeypatch.setattr("stepline.fetch.fetch_weights", asked.append)
    assert run(capsys, "get", "whisper/tiny") == (0, [], "")
    assert asked == ["whisper/tiny"]


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("nope", "weights 'nope' are not known; choose from s3d, "),
        ("../s3d", "weights '../s3d' are not known"),
        ("s3d", "weights s3d are missing: run `stepline fetch weights/s3d`"),
    ],
)
def test_what_cannot_be_checked_is_one_line(name: str, line: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, lines, said = run(capsys, "check", name)
    assert (code, lines) == (2, [])
    assert said.startswith(f"error: {line}")


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was loaded, by networks and towers of which s3d's fail."""
    loaded: list[str] = []

    def load(spec: Any, files: Any) -> None:
        if "s3d" in spec.weights:
            raise StoreError(f"{files['s3d_howto100m.pth']} is not S3D: it looks like BERT")
        loaded.append(spec.name)

    def spec(name: str, *weights: str) -> Any:
        return SimpleNamespace(name=name, architecture="toy", model="", weights=weights)

    about = ("one", "timesformer"), ("same", "timesformer"), ("two", "s3d"), ("on", "s3d", "timesformer")
    specs = [spec(*each) for each in about]
    monkeypatch.setattr(registry, "networks_of", lambda name: [each for each in specs if name in each.weights])
    monkeypatch.setattr(registry, "towers", lambda: {"tower": spec("tower", "timesformer")})
    monkeypatch.setitem(registry.FAMILIES, "toy", "toy")
    monkeypatch.setattr(verbs, "import_module", lambda _: SimpleNamespace(load=load, load_text=load))
    return loaded


@pytest.mark.parametrize("name", ["hirest-joint", "clip4caption"])
def test_a_head_s_weights_are_loaded_as_that_head(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    (file,) = WEIGHTS[name].files
    monkeypatch.setitem(WEIGHTS, name, replace(WEIGHTS[name], files=(replace(file, size=0, sha256=""),)))
    path = fill(Path("weights", name), name) / file.name
    code, _, said = run(capsys, "check", name)
    assert code == 2
    assert said.startswith(f"error: {path} is not a PyTorch checkpoint")
    monkeypatch.setattr(f"stepline.models.hirest_joint_release.{models.WEIGHTS[name]}", lambda _: Path())
    assert run(capsys, "check", name) == (0, [f"{name}: weights/{name}: loads as PosixPath"], "")


def test_each_network_and_tower_is_loaded_once(loads: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    fill(Path("weights/timesformer"), "timesformer")
    line = "timesformer: weights/timesformer: loads as one, same, tower"
    assert run(capsys, "check", "timesformer") == (0, [line], "")
    assert loads == ["same", "tower"]


def test_a_metric_of_captions_scores_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    scored: list[tuple[list[str], list[str]]] = []
    monkeypatch.setitem(SCORERS, "spice", lambda *texts: scored.append(texts))
    fill(Path("weights/corenlp"), "corenlp")
    assert run(capsys, "check") == (0, ["corenlp: weights/corenlp: loads as spice"], "")
    assert scored == [(["salt"], ["salt"])]


def test_one_that_is_wrong_does_not_keep_the_rest_from_being_checked(
    loads: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    fill(Path("weights/s3d"), "s3d")
    fill(Path("weights/timesformer"), "timesformer")
    code, lines, said = run(capsys, "check")
    assert code == 2
    assert lines == [
        "s3d: weights/s3d/s3d_howto100m.pth is not S3D: it looks like BERT",
        "timesformer: weights/timesformer: loads as one, same, tower",
    ]
    assert said == "error: 1 of 2 weights failed the check: s3d\n"
    assert run(capsys, "check", "s3d")[2] == "error: weights/s3d/s3d_howto100m.pth is not S3D: it looks like BERT\n"


@pytest.mark.usefixtures("loads")
def test_bytes_are_read_again_whatever_is_remembered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STEPLINE_RUN", "1")
    path = fill(Path("weights/timesformer"), "timesformer") / WEIGHTS["timesformer"].files[0].name
    files = (File(name=path.name, sha256=sha256_file(path), size=12),)
    monkeypatch.setitem(WEIGHTS, "timesformer", replace(WEIGHTS["timesformer"], files=files))
    os.utime(path, (1e9, 1e9))  # the sha256 of a file that has just changed is not remembered
    assert module.locate("timesformer") is not None
    before = path.stat()
    path.write_bytes(b"y" * 12)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert module.locate("timesformer") is not None
    code, _, said = run(capsys, "check", "timesformer")
    assert code == 2
    assert "is not the published file: sha256 " in said

import re
import sys
import types
from dataclasses import replace
from pathlib import Path

import pytest

from stepline.backbones.weights import WEIGHTS, File, Weights, how_to_get, locate, weights_of
from stepline.errors import ConfigError, StoreError
from stepline.io import sha256_file, write_json


def fill(folder: Path, name: str) -> dict[str, Path]:
    folder.mkdir(parents=True)
    files = {file.name: folder / file.name for file in WEIGHTS[name].files}
    for path in files.values():
        path.write_bytes(b"as it came")
    return files


def test_weights_are_found_in_one_folder_that_has_all_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was fetched goes before the mirror."""
    assert locate("mpnet") is None
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    files = fill(tmp_path / "mirror/weights/mpnet", "mpnet")
    assert locate("mpnet") == files
    here = fill(Path("weights/mpnet"), "mpnet")
    assert locate("mpnet") == here
    here["config.json"].unlink()
    assert locate("mpnet") == files
    files["tokenizer.json"].unlink()
    assert locate("mpnet") is None


def test_fetched_weights_that_changed_are_one_line() -> None:
    path = fill(Path("weights/timesformer"), "timesformer").popitem()[1]
    first = sha256_file(path)
    write_json(path.parent / "sha256.json", {path.name: first})
    assert locate("timesformer") is not None
    path.write_bytes(b"as it never was")
    line = (
        f"{path} is not the file that was downloaded: sha256 {sha256_file(path)}, expected {first}: "
        "remove weights/timesformer and run `stepline fetch weights/timesformer`"
    )
    with pytest.raises(StoreError, match=f"^{re.escape(line)}$"):
        locate("timesformer")


@pytest.mark.parametrize("where", ["here", "mirror"])
def test_what_is_not_the_published_file_is_one_line(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mirror").mkdir()
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    folder = Path("weights/eva_clip") if where == "here" else tmp_path / "mirror/weights/eva_clip"
    path = fill(folder, "eva_clip").popitem()[1]
    line = f"{path} is not the published file: 10 bytes, expected 2273012515: remove {folder} and run"
    with pytest.raises(StoreError, match=f"^{re.escape(line)}"):
        locate("eva_clip")
    (published,) = WEIGHTS["eva_clip"].files
    monkeypatch.setitem(WEIGHTS, "eva_clip", replace(WEIGHTS["eva_clip"], files=(replace(published, size=10),)))
    line = f"{path} is not the published file: sha256 {sha256_file(path)}, expected {published.sha256}: remove {folder}"
    with pytest.raises(StoreError, match=f"^{re.escape(line)}"):
        locate("eva_clip")


def test_the_command_fetches_what_is_offered_and_copies_what_is_not() -> None:
    assert how_to_get("mpnet") == "stepline fetch weights/mpnet"
    copy = "install -D -t weights/egovlp EgoVLP_PT_BEST.pth"
    assert how_to_get("egovlp") == f"{copy} && stepline fetch weights/egovlp"
    fill(Path("weights/egovlp"), "egovlp")["tokenizer.json"].unlink()
    assert how_to_get("egovlp") == "stepline fetch weights/egovlp"


@pytest.mark.parametrize("name", WEIGHTS)
def test_each_file_has_an_address_or_there_is_a_way_by_hand(name: str) -> None:
    weights = WEIGHTS[name]
    for file in weights.files:
        assert file.url.startswith("https://") or weights.by_hand
        assert file.url == "" or file.url.endswith(f"/{file.name}")
        assert bool(file.size) == bool(file.sha256)
        assert re.fullmatch("([0-9a-f]{64})?", file.sha256)
    assert weights.licence
    assert weights.origin.startswith("https://")


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "../a", "/a", "a b", "a\n", "-rf"])
def test_a_name_is_no_path(name: str) -> None:
    with pytest.raises(ConfigError, match="is not a file or folder name"):
        Weights(name=name, files=(), origin="", licence="")
    with pytest.raises(ConfigError, match="is not a file or folder name"):
        Weights(name="a", files=(File(name=name),), origin="", licence="")


def test_weights_that_are_unknown_are_one_line() -> None:
    for name in ("", "S3D", "../s3d"):
        with pytest.raises(ConfigError, match=f"^weights '{name}' are not known; choose from s3d, timesformer"):
            weights_of(name)


def test_models_by_name_have_weights_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def weights(name: str) -> Weights:
        return Weights(name=name.replace(":", "-"), files=(File(name="a.bin"),), origin="https://x", licence="MIT")

    named = types.ModuleType("stepline.backbones.named")
    named.weights = weights  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, named.__name__, named)
    assert locate("timm:x") is None
    assert how_to_get("timm:x") == "install -D -t weights/timm-x a.bin && stepline fetch weights/timm:x"
    Path("weights/timm-x").mkdir(parents=True)
    Path("weights/timm-x/a.bin").touch()
    assert locate("timm:x") == {"a.bin": Path("weights/timm-x/a.bin")}

from pathlib import Path

import pytest

from stepline.backbones.weights import WEIGHTS, how_to_get, locate
from stepline.errors import StoreError
from stepline.io import sha256_file, write_json


def test_weights_are_found_where_all_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert locate("videoclip") is None
    mirror = tmp_path / "mirror"
    monkeypatch.setenv("STEPLINE_MIRROR", str(mirror))
    first, *others = WEIGHTS["videoclip"].files
    (mirror / "weights/videoclip").mkdir(parents=True)
    (mirror / "weights/videoclip" / first).touch()
    assert locate("videoclip") is None
    for file in others:
        (mirror / "weights/videoclip" / file).touch()
    found = locate("videoclip")
    assert found == {file: mirror / "weights/videoclip" / file for file in WEIGHTS["videoclip"].files}


def test_what_was_fetched_goes_before_the_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    for folder in (tmp_path / "mirror/weights/egovlp", Path("weights/egovlp")):
        folder.mkdir(parents=True)
        (folder / "EgoVLP_PT_BEST.pth").touch()
    assert locate("egovlp") == {"EgoVLP_PT_BEST.pth": Path("weights/egovlp/EgoVLP_PT_BEST.pth")}


def test_one_model_is_never_made_of_two_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    whole, half = tmp_path / "mirror/weights/mpnet", Path("weights/mpnet")
    first, *others = WEIGHTS["mpnet"].files
    for path in (whole / first, *(whole / file for file in others), half / others[0]):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert locate("mpnet") == {file: whole / file for file in (first, *others)}
    (whole / others[0]).unlink()
    assert locate("mpnet") is None


def test_fetched_weights_that_changed_are_one_line() -> None:
    folder = Path("weights/egovlp")
    folder.mkdir(parents=True)
    (folder / "EgoVLP_PT_BEST.pth").write_bytes(b"as it came")
    write_json(folder / "sha256.json", {"EgoVLP_PT_BEST.pth": sha256_file(folder / "EgoVLP_PT_BEST.pth")})
    assert locate("egovlp") is not None
    (folder / "EgoVLP_PT_BEST.pth").write_bytes(b"as it never was")
    with pytest.raises(
        StoreError, match="^weights/egovlp/EgoVLP_PT_BEST.pth is not what was fetched: remove weights/egovlp and run"
    ):
        locate("egovlp")


def test_the_command_fetches_what_is_offered_and_copies_what_is_not() -> None:
    assert how_to_get("mpnet") == "stepline fetch weights/mpnet"
    folder = "weights/internvideo/"
    assert how_to_get("internvideo") == f"mkdir -p {folder} && cp pytorch_model.bin {folder}"


@pytest.mark.parametrize("name", WEIGHTS)
def test_each_weight_has_an_address_for_each_file_or_none_and_a_licence(name: str) -> None:
    weights = WEIGHTS[name]
    assert len(weights.urls) in (0, len(weights.files))
    assert all(url.endswith(f"/{file}") for url, file in zip(weights.urls, weights.files, strict=False))
    assert weights.licence
    assert weights.origin.startswith("https://")

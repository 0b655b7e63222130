import hashlib
from pathlib import Path

import pytest

from stepline.asr import weights
from stepline.errors import ConfigError, DownloadError
from stepline.fetch import fetch_weights
from tests.file_server import serving


def test_names_addresses_and_checksums_are_whispers() -> None:
    whisper = pytest.importorskip("whisper")
    ours = {name: url for name, (url, _) in weights.WHISPER.items()}
    aliases = {"large", "turbo"}
    assert ours == {name: url for name, url in whisper._MODELS.items() if name not in aliases}
    assert all(url.split("/")[-2] == sha256 for url, sha256 in weights.WHISPER.values())


def test_names_and_repositories_are_faster_whispers() -> None:
    utils = pytest.importorskip("faster_whisper.utils")
    assert weights.FASTER_WHISPER.items() <= utils._MODELS.items()


def test_the_fetched_one_is_found_and_then_the_mirrors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    held, fetched = tmp_path / "mirror/weights/whisper/tiny.en.pt", Path("weights/whisper/tiny.en.pt")
    held.parent.mkdir(parents=True)
    assert weights.locate("whisper", "tiny.en") is None
    held.touch()
    assert weights.locate("whisper", "tiny.en") == held
    fetched.parent.mkdir(parents=True)
    fetched.touch()
    assert weights.locate("whisper", "tiny.en") == fetched
    assert weights.locate("whisper", "./tiny.en") is None


def test_a_model_of_faster_whisper_is_a_folder_with_all_its_files() -> None:
    folder = Path("weights/faster-whisper/tiny.en")
    folder.mkdir(parents=True)
    for name in weights.MODEL_FILES:
        assert weights.locate("faster_whisper", "tiny.en") is None
        (folder / name).touch()
    assert weights.locate("faster_whisper", "tiny.en") == folder
    assert weights.locate("faster_whisper", "./weights/faster-whisper/tiny.en") == folder


def test_a_model_in_a_home_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.pt").touch()
    assert weights.locate("whisper", "~/mine.pt") == tmp_path / "mine.pt"
    assert weights.locate("whisper", "~nobody-here/mine.pt") is None


@pytest.mark.parametrize("engine", ["whisper", "faster_whisper"])
def test_an_unknown_name_is_one_line(engine: str) -> None:
    with pytest.raises(ConfigError, match=f"asr.{engine}.model: 'huge' is not allowed; choose from tiny.en, .* a path"):
        weights.locate(engine, "huge")


def test_every_absent_model_has_a_command() -> None:
    assert weights.how_to_get("whisper/small.en") == "stepline fetch weights/whisper/small.en"
    assert weights.how_to_get("faster-whisper/small.en") == (
        "hf download Systran/faster-whisper-small.en --local-dir weights/faster-whisper/small.en"
    )
    assert weights.how_to_get("/models/mine.pt") == "mkdir -p /models && cp -r MODEL /models/mine.pt"


def test_a_checkpoint_is_fetched_once_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    sha256 = hashlib.sha256(b"checkpoint").hexdigest()
    with serving(**{"tiny.en.pt": b"checkpoint", "base.en.pt": b"another"}) as server:
        monkeypatch.setitem(weights.WHISPER, "tiny.en", (f"{server.url}/tiny.en.pt", sha256))
        monkeypatch.setitem(weights.WHISPER, "base.en", (f"{server.url}/base.en.pt", sha256))
        fetch_weights("whisper/tiny.en")
        fetch_weights("whisper/tiny.en")
        with pytest.raises(DownloadError, match="wrong checksum"):
            fetch_weights("whisper/base.en")
        assert [path for path, _ in server.gets].count("/tiny.en.pt") == 1
    path = weights.locate("whisper", "tiny.en")
    assert path is not None
    assert path.read_bytes() == b"checkpoint"
    assert weights.locate("whisper", "base.en") is None

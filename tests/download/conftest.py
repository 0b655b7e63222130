"""Real videos, and servers that have them."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import imageio_ffmpeg
import pytest

from tests.conftest import made_once
from tests.download import clip
from tests.file_server import FileServer, serving


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the files of ``clip.make``."""
    return made_once(tmp_path_factory, "clips", clip.make)


@pytest.fixture(autouse=True, scope="module")
def _headers() -> Iterator[None]:
    """No process stays for the next tests."""
    yield
    clip.HEADERS.close()


@pytest.fixture
def server(clips: Path) -> Iterator[FileServer]:
    """Serves the clips, and a page that plays ``a.mp4``."""
    with serving(**{path.name: path.read_bytes() for path in sorted(clips.iterdir())}) as running:
        running.files["/page.html"] = b'<html><title>A soup</title><video src="/a.mp4"></video></html>'
        yield running


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the videos of a study in a mirror."""
    folder = tmp_path / "mirror/study/videos"
    folder.mkdir(parents=True)
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    return folder


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder in which programs are found."""
    folder = tmp_path / "programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.fixture
def ffmpeg(programs: Path) -> Path:
    shutil.copy(imageio_ffmpeg.get_ffmpeg_exe(), programs / "ffmpeg")
    return programs / "ffmpeg"


SITE = Path(__file__).parent / "site"


@pytest.fixture
def youtube(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> FileServer:
    """YouTube as ``site`` plays it: yt-dlp asks it for http://www.youtube.com/watch?v=..., by way of a proxy."""
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("PYTHONPATH", str(SITE), prepend=os.pathsep)
    return server

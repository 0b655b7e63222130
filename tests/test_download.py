import hashlib
import multiprocessing
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepline import download
from stepline.availability import Record
from stepline.datasets.schema import Video
from stepline.download import fetch_file, fetch_video, unreachable
from stepline.errors import DownloadError, ReleaseError
from tests.file_server import FileServer, serving

CONTENT = bytes(range(256)) * 4000
SHA256 = hashlib.sha256(CONTENT).hexdigest()
CUT = 300_000


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FileServer]:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    with serving(a=CONTENT) as running:
        yield running


@pytest.fixture
def get(server: FileServer) -> Callable[[], bytes]:
    """Fetch /a, pinned, and return what was written."""

    def fetch() -> bytes:
        fetch_file(f"{server.url}/a", Path("out/a"), sha256=SHA256, size=len(CONTENT))
        assert [path.name for path in Path("out").iterdir()] == ["a"]
        return Path("out/a").read_bytes()

    return fetch


def refused(server: FileServer, path: str = "a", **pins: object) -> str:
    """Return the one line of a failing download, after which there is no file."""
    with pytest.raises(DownloadError) as error:
        fetch_file(f"{server.url}/{path}", Path("out") / path, **pins)  # type: ignore[arg-type]
    assert not (Path("out") / path).exists()
    assert "\n" not in str(error.value)
    return str(error.value)


def parts() -> list[int]:
    """The sizes of the partial files."""
    return [path.stat().st_size for path in Path("out").glob(".*.part")]


def test_a_file_comes_with_one_probe_and_one_request(server: FileServer, get: Callable[[], bytes]) -> None:
    assert get() == CONTENT
    assert server.asked == [("HEAD", "/", ""), ("GET", "/a", "")]


def test_after_a_cut_only_the_rest_is_sent(server: FileServer, get: Callable[[], bytes]) -> None:
    server.next["/a"] = [("cut", CUT)]
    assert get() == CONTENT
    assert [path for path, _ in server.gets] == ["/a", "/a"]
    assert server.gets[1][1] == f"bytes={CUT}-"
    assert server.sent == len(CONTENT)


def test_a_later_run_goes_on_where_an_earlier_one_was_cut(server: FileServer, get: Callable[[], bytes]) -> None:
    server.next["/a"] = [("cut", CUT), ("cut", 10), 503]
    assert f"{server.url}/a: HTTP 503 (3 attempts)" in refused(server, sha256=SHA256, size=len(CONTENT))
    assert parts() == [CUT + 10]
    assert get() == CONTENT
    assert server.gets[-1] == ("/a", f"bytes={CUT + 10}-")
    assert server.sent == len(CONTENT)


def test_a_server_that_ignores_ranges_sends_all_again(server: FileServer, get: Callable[[], bytes]) -> None:
    server.next["/a"] = [("cut", CUT), "whole"]
    assert get() == CONTENT


def test_a_part_that_was_whole_already_is_fetched_again(server: FileServer, get: Callable[[], bytes]) -> None:
    Path("out").mkdir()
    Path("out/.a.part").write_bytes(CONTENT)
    assert get() == CONTENT


def test_a_busy_server_is_asked_again(server: FileServer, get: Callable[[], bytes]) -> None:
    server.next["/a"] = [503, 500]
    assert get() == CONTENT
    assert len(server.gets) == 3


def test_a_server_that_stays_busy_is_asked_three_times(server: FileServer) -> None:
    server.next["/a"] = [503] * 9
    assert refused(server) == f"{server.url}/a: HTTP 503 (3 attempts)"
    assert len(server.gets) == 3


@pytest.mark.parametrize("status", [401, 403, 404, 410])
def test_what_is_not_there_is_asked_for_once(server: FileServer, status: int) -> None:
    server.next["/a"] = [status]
    assert refused(server) == f"{server.url}/a: HTTP {status}"
    assert len(server.gets) == 1


def test_a_truncated_file_is_refused(server: FileServer) -> None:
    server.next["/a"] = [("short", CUT), 416, ("short", CUT)]
    assert "truncated: 300000 of 1024000 bytes" in refused(server, sha256=SHA256, size=len(CONTENT))


def test_a_file_that_is_too_long_is_refused(server: FileServer) -> None:
    assert "wrong length: 1024000 of 99 bytes" in refused(server, sha256=SHA256, size=99)
    assert parts() == []


def test_a_wrong_checksum_names_both_and_leaves_nothing(server: FileServer) -> None:
    server.files["/a"] = CONTENT[::-1]
    line = refused(server, sha256=SHA256, size=len(CONTENT))
    assert SHA256 in line
    assert hashlib.sha256(CONTENT[::-1]).hexdigest() in line
    assert parts() == []


def test_a_redirect_is_followed(server: FileServer) -> None:
    server.next["/moved"] = [("to", "/a")]
    fetch_file(f"{server.url}/moved", Path("out/a"), sha256=SHA256)
    assert Path("out/a").read_bytes() == CONTENT


def test_redirects_without_end_are_one_line(server: FileServer) -> None:
    server.next["/a"] = [("to", "/a")] * 200
    assert f"{server.url}/a: " in refused(server)


def test_a_refused_download_leaves_the_old_file(server: FileServer) -> None:
    Path("out").mkdir()
    Path("out/a").write_text("old")
    server.next["/a"] = [404]
    with pytest.raises(DownloadError):
        fetch_file(f"{server.url}/a", Path("out/a"))
    assert Path("out/a").read_text() == "old"


# Unreachable hosts


def closed() -> str:
    """Return an address where nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{sock.getsockname()[1]}"


@pytest.fixture
def silent() -> Iterator[tuple[str, socket.socket]]:
    """An address that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as sock:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}", sock


def connections(sock: socket.socket) -> int:
    sock.settimeout(0.2)
    count = 0
    try:
        while True:
            sock.accept()[0].close()
            count += 1
    except TimeoutError:
        return count


def test_an_unreachable_host_is_named_and_not_retried() -> None:
    url = closed()
    began = time.monotonic()
    with pytest.raises(DownloadError, match=f"^{url[7:]} is unreachable \\(.*refused.*\\)$"):
        fetch_file(f"{url}/a", Path("out/a"))
    assert time.monotonic() - began < 2


def test_a_silent_host_is_probed_once_within_the_limit(
    silent: tuple[str, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert download.PROBE_S <= 10
    monkeypatch.setattr(download, "PROBE_S", 1.0)
    began = time.monotonic()
    for name in "abcdef":
        with pytest.raises(DownloadError, match="is unreachable"):
            fetch_file(f"{silent[0]}/{name}", Path(name))
    assert time.monotonic() - began < 2
    assert connections(silent[1]) == 1


def test_looking_up_a_name_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PROBE_S", 0.5)

    def look_up(*_: object, **__: object) -> None:
        time.sleep(4)
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    began = time.monotonic()
    assert unreachable("https://somewhere.invalid/a") == "somewhere.invalid is unreachable (no answer in 0.5 s)"
    assert time.monotonic() - began < 3


def test_trying_many_addresses_counts_too(silent: tuple[str, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "PROBE_S", 0.5)
    address = ("127.0.0.1", silent[1].getsockname()[1])
    many = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", address)] * 50
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: many)
    began = time.monotonic()
    assert "is unreachable" in unreachable("http://many.invalid/a")
    assert time.monotonic() - began < 3


def _ask(url: str) -> str:
    return unreachable(url)


def test_the_jobs_of_a_run_share_one_probe_even_at_once(
    silent: tuple[str, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "PROBE_S", 1.0)
    monkeypatch.setenv("STEPLINE_RUN", "run-1")
    with multiprocessing.get_context("fork").Pool(3) as pool:
        answers = pool.map(_ask, [f"{silent[0]}/{name}" for name in "abc"], chunksize=1)
    assert len(set(answers)) == 1
    assert "is unreachable" in answers[0]
    assert connections(silent[1]) == 1


def test_another_run_probes_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_RUN", "run-1")
    with serving(a=CONTENT) as server:
        assert unreachable(f"{server.url}/a") == ""
        assert unreachable(f"{server.url}/b") == ""
        assert len(server.asked) == 1
        monkeypatch.setenv("STEPLINE_RUN", "run-2")
        assert unreachable(f"{server.url}/a") == ""
        assert len(server.asked) == 2


# Videos


def video(name: str = "a", url: str = "", sha256: str = "") -> Video:
    return Video(id=name, split="test", duration_s=1.0, url=url, path=f"study/videos/{name}.mp4", sha256=sha256)


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mirror"
    (folder / "study" / "videos").mkdir(parents=True)
    monkeypatch.setenv("STEPLINE_MIRROR", str(folder))
    return folder


def test_a_video_in_the_mirror_is_linked_not_copied(mirror: Path) -> None:
    held = mirror / "study/videos/a.mp4"
    held.write_bytes(CONTENT)
    record = fetch_video(video(), Path("videos"), before=None)
    path = Path("videos/a.mp4")
    assert path.is_symlink()
    assert path.resolve() == held
    assert record == Record(
        video="a", status="present", path=str(path), sha256=SHA256, size=len(CONTENT), source="mirror", attempts=0
    )
    assert fetch_video(video(), Path("videos"), before=record) == record


def test_a_video_that_vanished_from_the_mirror_is_missing(mirror: Path) -> None:
    held = mirror / "study/videos/a.mp4"
    held.write_bytes(CONTENT)
    before = fetch_video(video(), Path("videos"), before=None)
    held.unlink()
    record = fetch_video(video(), Path("videos"), before=before)
    assert (record.status, record.reason) == ("missing", "not in the mirror at study/videos/a.mp4")
    assert list(Path("videos").iterdir()) == []
    held.write_bytes(CONTENT)
    assert fetch_video(video(), Path("videos"), before=record).status == "present"


def test_another_file_in_the_mirror_is_followed(mirror: Path) -> None:
    held = mirror / "study/videos/a.mp4"
    held.write_bytes(CONTENT)
    before = fetch_video(video(), Path("videos"), before=None)
    held.write_bytes(CONTENT[::-1] + b"!")
    assert fetch_video(video(), Path("videos"), before=before).sha256 != SHA256


def test_a_wrong_file_in_the_mirror_is_mismatched(mirror: Path) -> None:
    (mirror / "study/videos/a.mp4").write_bytes(CONTENT)
    record = fetch_video(video(sha256="0" * 64), Path("videos"), before=None)
    assert record.status == "mismatched"
    assert record.reason == f"wrong checksum: sha256 is {SHA256}, expected {'0' * 64}"


def test_a_video_without_address_is_missing_without_a_mirror() -> None:
    record = fetch_video(video(), Path("videos"), before=None)
    assert (record.status, record.attempts) == ("missing", 0)


def test_a_video_is_downloaded_once(server: FileServer) -> None:
    wanted = video(url=f"{server.url}/a", sha256=SHA256)
    record = fetch_video(wanted, Path("videos"), before=None)
    assert (record.status, record.source, record.attempts) == ("present", f"{server.url}/a", 1)
    assert fetch_video(wanted, Path("videos"), before=record) == record
    assert len(server.gets) == 1


def test_failures_are_recorded_and_counted_until_it_comes(server: FileServer) -> None:
    wanted = video(url=f"{server.url}/a")
    server.next["/a"] = [404, 403]
    first = fetch_video(wanted, Path("videos"), before=None)
    assert (first.status, first.reason, first.attempts) == ("failed", f"{server.url}/a: HTTP 404", 1)
    second = fetch_video(wanted, Path("videos"), before=first)
    assert (second.status, second.reason, second.attempts) == ("failed", f"{server.url}/a: HTTP 403", 2)
    third = fetch_video(wanted, Path("videos"), before=second)
    assert (third.status, third.reason, third.attempts) == ("present", "", 3)


def test_an_unreachable_host_is_a_record() -> None:
    record = fetch_video(video(url=f"{closed()}/a"), Path("videos"), before=None)
    assert (record.status, record.attempts) == ("failed", 1)
    assert "is unreachable" in record.reason


@pytest.mark.parametrize("name", ["../../x", "a/b", "/x"])
def test_a_path_for_an_id_is_refused(mirror: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(ReleaseError, match="is not allowed"):
        fetch_video(video(name), Path("videos"), before=None)
    assert list(tmp_path.iterdir()) == [mirror]

import hashlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stepline.download import fetch_file, http
from stepline.errors import DownloadError
from tests.file_server import FileServer, How, serving
from tests.server import PIECE

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


def test_what_is_sent_all_again_is_whole_at_its_own_length(server: FileServer) -> None:
    server.next["/a"] = [("cut", CUT), "whole"]
    fetch_file(f"{server.url}/a", Path("out/a"))
    assert Path("out/a").read_bytes() == CONTENT
    assert len(server.gets) == 2


def whole_already(server: FileServer) -> None:
    """Leave a part that has every byte, as a kill before it is checked does."""
    server.next["/a"] = [("cut", len(CONTENT) - 1), 503, 503]
    refused(server)
    with open("out/.a.part", "ab") as file:
        file.write(CONTENT[-1:])


def test_a_part_that_was_whole_already_is_not_sent_again(server: FileServer, get: Callable[[], bytes]) -> None:
    whole_already(server)
    assert get() == CONTENT
    assert server.gets[-1] == ("/a", f"bytes={len(CONTENT)}-")


def test_a_part_that_cannot_be_told_to_be_whole_is_sent_again(server: FileServer, get: Callable[[], bytes]) -> None:
    whole_already(server)
    server.next["/a"] = [416]
    assert get() == CONTENT
    assert server.gets[-2:] == [("/a", f"bytes={len(CONTENT)}-"), ("/a", "")]


OTHER = CONTENT[::-1] + b"and longer"


@pytest.mark.parametrize("version", ["ETag", "Last-Modified"])
def test_a_part_of_a_file_that_changed_is_thrown_away(server: FileServer, version: str) -> None:
    server.version = version
    server.next["/a"] = [("cut", CUT), 503, 503]
    refused(server)
    server.files["/a"] = OTHER
    fetch_file(f"{server.url}/a", Path("out/a"))
    assert Path("out/a").read_bytes() == OTHER
    assert server.gets[-1] == ("/a", f"bytes={CUT}-")
    assert [path.name for path in Path("out").iterdir()] == ["a"]


@pytest.mark.parametrize("version", ["ETag", "Last-Modified"])
def test_a_part_of_the_same_file_is_kept_by_either_mark(server: FileServer, version: str) -> None:
    server.version = version
    server.next["/a"] = [("cut", CUT)]
    fetch_file(f"{server.url}/a", Path("out/a"))
    assert Path("out/a").read_bytes() == CONTENT
    assert server.sent == len(CONTENT)


def test_a_server_that_sends_the_rest_of_another_file_is_not_believed(server: FileServer) -> None:
    server.next["/a"] = [("cut", CUT), 503, 503, "any"]
    refused(server)
    server.files["/a"] = CONTENT[::-1]
    fetch_file(f"{server.url}/a", Path("out/a"))
    assert Path("out/a").read_bytes() == CONTENT[::-1]


def test_where_nothing_tells_versions_apart_all_is_sent_again(server: FileServer) -> None:
    server.version = ""
    server.next["/a"] = [("cut", CUT), 503, 503]
    refused(server)
    server.files["/a"] = OTHER
    fetch_file(f"{server.url}/a", Path("out/a"))
    assert Path("out/a").read_bytes() == OTHER
    assert server.gets[-1] == ("/a", "")


def test_a_busy_server_is_asked_again(server: FileServer, get: Callable[[], bytes]) -> None:
    server.next["/a"] = [503, 500]
    assert get() == CONTENT
    assert len(server.gets) == 3


def test_a_body_that_stalls_is_waited_for_so_long_and_then_resumed(
    server: FileServer, get: Callable[[], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert http.STALL_S <= 60
    monkeypatch.setattr(http, "STALL_S", 1.5)
    server.next["/a"] = [("stall", CUT)]
    began = time.monotonic()
    assert get() == CONTENT
    assert 1.5 <= time.monotonic() - began < 15
    assert server.gets[1:] == [("/a", f"bytes={CUT}-")]
    assert server.left.wait(5)


def test_a_body_that_is_slow_but_alive_goes_through(
    server: FileServer, get: Callable[[], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "STALL_S", 1.0)
    server.next["/a"] = [("slow", len(CONTENT) // 12)]
    began = time.monotonic()
    assert get() == CONTENT
    assert time.monotonic() - began > 1
    assert len(server.gets) == 1


def test_a_rate_is_held() -> None:
    with serving(a=CONTENT) as server:
        began = time.monotonic()
        fetch_file(f"{server.url}/a", Path("a"), rate=len(CONTENT))
        assert 0.9 < time.monotonic() - began < 8


def test_a_server_that_stays_busy_is_asked_three_times(server: FileServer) -> None:
    server.next["/a"] = [503] * 9
    assert refused(server) == f"{server.url}/a: HTTP 503 (3 attempts)"
    assert len(server.gets) == 3


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch, server: FileServer) -> list[float]:
    """How long was waited, in seconds."""
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


def test_a_server_that_asks_for_hours_is_not_waited_for(server: FileServer, waits: list[float]) -> None:
    server.next["/a"] = [("later", "3600")]
    assert refused(server) == f"{server.url}/a: HTTP 429, requests a wait of 3600 s"
    assert waits == []
    assert "is left alone until the next run: " in refused(server)
    assert len(server.gets) == 1
    assert http.LONGEST_WAIT_S <= 60


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


def test_redirects_without_end_are_followed_ten_times_in_all(server: FileServer) -> None:
    server.next["/a"] = [("to", "/a")] * 200
    assert refused(server) == f"{server.url}/a: Exceeded maximum allowed redirects."
    assert len(server.gets) == 11


@pytest.mark.parametrize("drips", [b"HTTP/1.1 200 OK\r\n|X: a\r\n", b"|HTTP/1.1 103 Early Hints\r\n\r\n", b"|H"])
def test_headers_without_end_are_left_after_a_limit(drips: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "STALL_S", 0.3)
    monkeypatch.setattr(http, "ATTEMPTS", 1)
    with serving() as server:
        server.next["/a"] = [("raw", drips.decode())]
        began = time.monotonic()
        assert refused(server) == f"{server.url}/a: no answer in 0.3 s (1 attempts)"
        assert time.monotonic() - began < 8


@pytest.mark.parametrize("length", ["5;|a", "3\r\nabc\r\n0\r\n|X: a\r\n"], ids=["extension", "trailer"])
def test_a_body_that_drips_between_its_chunks_is_left(length: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "STALL_S", 0.3)
    monkeypatch.setattr(http, "ATTEMPTS", 1)
    with serving() as server:
        server.next["/a"] = [("raw", f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{length}")]
        assert "no answer in 0.3 s" in refused(server)


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("HTTP/1.1 416 No\r\nContent-Range: bytes */0\r\nContent-Length: 0\r\n\r\n", "HTTP 416"),
        (f"HTTP/1.1 206 Part\r\nContent-Range: bytes 0-1/{'9' * 4400}\r\nContent-Length: 2\r\n\r\nab", "another part"),
        (f"HTTP/1.1 302 Found\r\nLocation: http://{'a' * 64}.invalid/\r\nContent-Length: 0\r\n\r\n", "too long"),
        ("HTTP/1.1 302 Found\r\nLocation: http://xn--a.invalid/\r\nContent-Length: 0\r\n\r\n", "U+0080"),
        ("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n", "bad Content-Length"),
        (f"HTTP/{'9' * 5000} 200 OK\r\n\r\n", "illegal status line"),
        ("HTTP/1.1 abc\x1b[2J\r\n\r\n", "illegal status line"),
    ],
)
def test_an_answer_that_cannot_be_is_one_short_line(answer: str, line: str, server: FileServer) -> None:
    server.next["/a"] = [("raw", answer)] * 3
    said = refused(server)
    assert line in said
    assert said.isprintable()
    assert len(said) < 600


@pytest.mark.parametrize("where", ["ftp://127.0.0.1/a", "file:///etc/passwd", "http://[", "http://nowhere.invalid/a"])
def test_a_redirect_to_what_cannot_be_asked_is_followed_once(server: FileServer, where: str) -> None:
    server.next["/a"] = [("to", where)] * 3
    line = refused(server)
    if not where.endswith("invalid/a"):  # without a network, looking up a name may pass
        assert "attempts" not in line
        assert len(server.gets) == 1


@pytest.mark.parametrize("how", [("from", 0), ("from", CUT - 1), ("from", CUT + 1), "bare", ("total", 99)])
def test_another_part_than_the_one_asked_for_is_not_appended(server: FileServer, how: How) -> None:
    server.next["/a"] = [("cut", CUT), how]
    fetch_file(f"{server.url}/a", Path("out/a"))
    assert Path("out/a").read_bytes() == CONTENT
    assert [wanted for _, wanted in server.gets] == ["", f"bytes={CUT}-", ""]


def test_a_part_that_was_not_asked_for_is_no_file(server: FileServer) -> None:
    server.next["/a"] = [("page", 206)] * 3
    assert "another part than the requested one (3 attempts)" in refused(server)
    assert parts() == []


@pytest.mark.parametrize(("how", "line"), [("gzip", "compressed (gzip)"), (204, "HTTP 204"), (302, "HTTP 302")])
def test_what_is_not_the_file_as_it_is_is_refused_at_once(server: FileServer, how: How, line: str) -> None:
    server.next["/a"] = [how]
    assert line in refused(server)
    assert len(server.gets) == 1


def test_a_body_in_chunks_comes_and_one_without_its_end_is_asked_for_again(server: FileServer) -> None:
    server.next["/a"] = [("chunked", CUT), "chunked"]
    fetch_file(f"{server.url}/a", Path("out/a"))
    assert Path("out/a").read_bytes() == CONTENT


def test_an_empty_answer_is_no_file(server: FileServer) -> None:
    server.next["/a"] = ["empty"] * 3
    assert refused(server) == f"{server.url}/a: the file is empty (3 attempts)"
    assert parts() == []


@pytest.mark.parametrize("size", [0, 10 * PIECE])
def test_a_body_without_end_is_cut_off(server: FileServer, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "MOST_UNTOLD", 100 * PIECE)
    server.next["/a"] = ["endless"]
    assert f"more than {size or 100 * PIECE} bytes" in refused(server, size=size)
    assert server.left.wait(5)
    assert server.sent < 1000 * PIECE
    assert parts() == []


def test_more_than_the_disk_holds_is_not_begun(server: FileServer) -> None:
    server.next["/a"] = [("says", 10**18)]
    assert "1000000000000000000 bytes, more than the disk can hold" in refused(server)
    assert len(server.gets) == 1


def test_a_body_that_drips_is_as_good_as_stalled(
    server: FileServer, get: Callable[[], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "STALL_S", 0.25)
    server.next["/a"] = [("slow", 10)]
    assert get() == CONTENT
    assert int(server.gets[1][1][6:-1]) < 100


def test_a_part_that_cannot_be_continued_is_not_kept(server: FileServer) -> None:
    server.version = ""
    server.next["/a"] = [("cut", CUT)] * 3
    refused(server)
    assert list(Path("out").iterdir()) == []


@pytest.mark.parametrize("about", ["", "\xff\xff", '"1"', '"1"\n' + 40 * "9"])
def test_damaged_notes_about_a_part_start_it_again(server: FileServer, get: Callable[[], bytes], about: str) -> None:
    server.next["/a"] = [("cut", CUT), 404]
    refused(server)
    Path("out/.a.version").write_bytes(about.encode("latin-1"))
    assert get() == CONTENT


def test_a_refused_download_leaves_the_old_file(server: FileServer) -> None:
    Path("out").mkdir()
    Path("out/a").write_text("old")
    server.next["/a"] = [404]
    with pytest.raises(DownloadError):
        fetch_file(f"{server.url}/a", Path("out/a"))
    assert Path("out/a").read_text() == "old"


def test_an_address_that_cannot_be_asked_for_is_one_line(server: FileServer) -> None:
    assert "non-printable" in refused(server, "a\x7f")

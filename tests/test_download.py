import hashlib
import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import pytest

from stepline import download
from stepline.availability import Record, read_availability
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


def test_what_is_sent_all_again_is_whole_at_its_own_length(server: FileServer) -> None:
    server.next["/a"] = [("cut", CUT), "whole"]
    fetch_file(f"{server.url}/a", Path("out/a"))
    assert Path("out/a").read_bytes() == CONTENT
    assert len(server.gets) == 2


def test_a_part_that_was_whole_already_is_fetched_again(server: FileServer, get: Callable[[], bytes]) -> None:
    server.next["/a"] = [("cut", len(CONTENT) - 1), 503, 503]
    refused(server)
    with open("out/.a.part", "ab") as file:
        file.write(CONTENT[-1:])
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
    server.files["/a"] = OTHER
    fetch_file(f"{server.url}/a", Path("out/a"))
    assert Path("out/a").read_bytes() == OTHER


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


def test_too_many_requests_are_asked_again_as_late_as_the_server_says(
    server: FileServer, get: Callable[[], bytes], waits: list[float]
) -> None:
    server.next["/a"] = [("later", "7"), ("later", "Wed, 21 Oct 2015 07:28:00 GMT")]
    assert get() == CONTENT
    assert waits == [7, 2]


def test_a_date_to_come_back_at_is_a_wait(server: FileServer, get: Callable[[], bytes], waits: list[float]) -> None:
    server.next["/a"] = [("later", formatdate(time.time() + 30, usegmt=True)), ("later", "soon")]
    assert get() == CONTENT
    assert waits == [pytest.approx(30, abs=5), 2]


def test_a_server_that_asks_for_hours_is_not_waited_for(server: FileServer, waits: list[float]) -> None:
    server.next["/a"] = [("later", "3600")]
    assert refused(server) == f"{server.url}/a: HTTP 429, asks to wait 3600 s"
    assert waits == []
    assert download.LONGEST_WAIT_S <= 60


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


@pytest.mark.parametrize(
    "url", ["http://host:port/a", "http://host:99999/a", "http://[::1/a", "http:///a", "a", "http://u:SECRET@host:x/a"]
)
def test_what_is_no_address_is_one_line_at_once(url: str) -> None:
    began = time.monotonic()
    assert unreachable(url) == f"{url.replace('u:SECRET@', '')} has no valid host and port"
    assert time.monotonic() - began < 1
    assert not Path(".stepline").exists()


@pytest.mark.parametrize("url", ["http://a..b/a", f"http://{'a' * 70}.invalid/a", "ftp://127.0.0.1/a"])
def test_a_host_that_nobody_can_look_up_is_one_line_at_once(url: str) -> None:
    began = time.monotonic()
    assert "is unreachable (" in unreachable(url)
    assert "no answer" not in unreachable(url)
    assert time.monotonic() - began < 1


def test_an_address_that_cannot_be_asked_for_is_one_line(server: FileServer) -> None:
    assert "non-printable" in refused(server, "a\x7f")


def test_names_and_passwords_are_written_nowhere(server: FileServer, tmp_path: Path) -> None:
    address = server.url.replace("//", "//user:SECRET@")
    server.next["/a"] = [403, *[503] * 3]
    for _ in range(2):
        fetch_video(video(url=f"{address}/a"), Path("videos"))
    fetch_video(video("b", url=closed().replace("//", "//user:SECRET@")), Path("videos"))
    with pytest.raises(DownloadError) as error:
        fetch_file(f"{address}/a", Path("a"), sha256="0" * 64)
    assert "SECRET" not in str(error.value)
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len([path for path in written if path.suffix == ".json"]) == 4
    assert not [path for path in written if "SECRET" in f"{path}{path.read_bytes()!r}"]


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
    record = fetch_video(video(), Path("videos"))
    path = Path("videos/a.mp4")
    assert path.is_symlink()
    assert path.resolve() == held
    assert record == Record(
        video="a", status="present", path=str(path), sha256=SHA256, size=len(CONTENT), source="mirror", attempts=0
    )
    assert fetch_video(video(), Path("videos")) == record


def test_a_video_that_vanished_from_the_mirror_is_missing(mirror: Path) -> None:
    held = mirror / "study/videos/a.mp4"
    held.write_bytes(CONTENT)
    fetch_video(video(), Path("videos"))
    held.unlink()
    record = fetch_video(video(), Path("videos"))
    assert (record.status, record.reason) == ("missing", "not in the mirror at study/videos/a.mp4")
    assert list(Path("videos").glob("*.mp4")) == []
    held.write_bytes(CONTENT)
    assert fetch_video(video(), Path("videos")).status == "present"


def test_another_file_in_the_mirror_is_followed(mirror: Path) -> None:
    held = mirror / "study/videos/a.mp4"
    held.write_bytes(CONTENT)
    fetch_video(video(), Path("videos"))
    held.write_bytes(CONTENT[::-1] + b"!")
    assert fetch_video(video(), Path("videos")).sha256 != SHA256


def test_a_wrong_file_in_the_mirror_is_mismatched(mirror: Path) -> None:
    (mirror / "study/videos/a.mp4").write_bytes(CONTENT)
    record = fetch_video(video(sha256="0" * 64), Path("videos"))
    assert record.status == "mismatched"
    assert record.reason == f"wrong checksum: sha256 is {SHA256}, expected {'0' * 64}"


def test_a_video_without_address_is_missing_without_a_mirror() -> None:
    record = fetch_video(video(), Path("videos"))
    assert (record.status, record.attempts) == ("missing", 0)


def test_attempts_are_remembered_where_the_address_is_withdrawn(server: FileServer) -> None:
    server.next["/a"] = [401]
    fetch_video(video(url=f"{server.url}/a"), Path("videos"))
    record = fetch_video(video(), Path("videos"))
    assert (record.status, record.attempts) == ("missing", 1)


def test_a_video_is_downloaded_once(server: FileServer) -> None:
    wanted = video(url=f"{server.url}/a", sha256=SHA256)
    record = fetch_video(wanted, Path("videos"))
    assert (record.status, record.source, record.attempts) == ("present", f"{server.url}/a", 1)
    assert fetch_video(wanted, Path("videos")) == record
    assert len(server.gets) == 1


def test_failures_are_recorded_and_counted_until_it_comes(server: FileServer) -> None:
    wanted = video(url=f"{server.url}/a")
    server.next["/a"] = [401, 403]
    first = fetch_video(wanted, Path("videos"))
    assert (first.status, first.reason, first.attempts) == ("failed", f"{server.url}/a: HTTP 401", 1)
    second = fetch_video(wanted, Path("videos"))
    assert (second.status, second.reason, second.attempts) == ("failed", f"{server.url}/a: HTTP 403", 2)
    third = fetch_video(wanted, Path("videos"))
    assert (third.status, third.reason, third.attempts) == ("present", "", 3)


def test_a_record_stands_beside_its_video(server: FileServer) -> None:
    wanted = video(url=f"{server.url}/a")
    server.next["/a"] = [401]
    for status in ("failed", "present"):
        record = fetch_video(wanted, Path("videos"))
        assert record.status == status
        assert read_availability("videos/a.json") == {"a": record}


@pytest.mark.parametrize("status", [404, 410])
def test_what_the_server_no_longer_has_is_gone_until_it_comes_back(server: FileServer, status: int) -> None:
    wanted = video(url=f"{server.url}/a")
    server.next["/a"] = [status]
    record = fetch_video(wanted, Path("videos"))
    assert (record.status, record.reason, record.attempts) == ("gone", f"{server.url}/a: HTTP {status}", 1)
    assert len(server.gets) == 1
    assert fetch_video(wanted, Path("videos")).status == "present"


# yt-dlp


@pytest.fixture
def page(server: FileServer) -> str:
    """The address of a site on the loopback that yt-dlp is asked for."""
    return f"{server.url}/youtube.com"


@pytest.fixture
def without_ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "no programs"))


@pytest.fixture
def ffmpeg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that says what ffmpeg says when it is looked for, and merges nothing."""
    program = tmp_path / "programs/ffmpeg"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "ffmpeg version 7.1"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)


TWO_STREAMS = b"""<?xml version="1.0"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT2S"><Period>
<AdaptationSet mimeType="video/mp4"><Representation id="v" codecs="avc1.4d401e" width="64" height="64" bandwidth="9">
<BaseURL>v.mp4</BaseURL></Representation></AdaptationSet>
<AdaptationSet mimeType="audio/mp4"><Representation id="a" codecs="mp4a.40.2" bandwidth="9">
<BaseURL>a.m4a</BaseURL></Representation></AdaptationSet>
</Period></MPD>"""


@pytest.mark.slow
@pytest.mark.usefixtures("without_ffmpeg")
def test_without_ffmpeg_one_file_is_taken_and_the_record_says_so(server: FileServer, page: str) -> None:
    server.files["/youtube.com/x.mp4"] = b"\0\0\0\x20ftypisom" + CONTENT
    wanted = video(url=f"{page}/x.mp4")
    record = fetch_video(wanted, Path("videos"))
    assert (record.status, record.attempts, record.source) == ("present", 1, wanted.url)
    assert record.reason.startswith("without ffmpeg: ")
    assert Path("videos/a.mp4").read_bytes() == server.files["/youtube.com/x.mp4"]
    assert sorted(path.name for path in Path("videos").iterdir()) == ["a.json", "a.mp4"]
    assert fetch_video(wanted, Path("videos")) == record


@pytest.mark.slow
@pytest.mark.usefixtures("without_ffmpeg")
def test_what_only_ffmpeg_could_merge_is_one_line_and_nothing_is_fetched(server: FileServer, page: str) -> None:
    server.files["/youtube.com/x.mpd"] = TWO_STREAMS
    record = fetch_video(video(url=f"{page}/x.mpd"), Path("videos"))
    assert record.status == "failed"
    assert record.reason.startswith("ffmpeg is not installed, and there is no mp4 of at most 720 lines ")
    assert {path for path, _ in server.gets} == {"/youtube.com/x.mpd"}


@pytest.mark.slow
@pytest.mark.usefixtures("ffmpeg")
def test_with_ffmpeg_picture_and_sound_are_fetched_to_be_merged(server: FileServer, page: str) -> None:
    server.files |= {"/youtube.com/x.mpd": TWO_STREAMS, "/youtube.com/v.mp4": CONTENT, "/youtube.com/a.m4a": CONTENT}
    fetch_video(video(url=f"{page}/x.mpd"), Path("videos"))
    assert {path for path, _ in server.gets} >= {"/youtube.com/v.mp4", "/youtube.com/a.m4a"}
    server.files["/youtube.com/x.mp4"] = b"\0\0\0\x20ftypisom" + CONTENT
    record = fetch_video(video("b", url=f"{page}/x.mp4"), Path("videos"))
    assert (record.status, record.reason) == ("present", "")


@pytest.mark.slow
def test_a_page_that_is_no_longer_there_is_gone(page: str) -> None:
    record = fetch_video(video(url=f"{page}/x"), Path("videos"))
    assert record.status == "gone"
    assert "HTTP Error 404" in record.reason


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("Private video. Sign in if you've been granted access to this video", "gone"),
        ("Video unavailable. This video is private", "gone"),
        ("Video unavailable. This video has been removed by the uploader", "gone"),
        ("This video has been removed for violating YouTube's Terms of Service", "gone"),
        ("This video is no longer available because the account associated with it has been terminated.", "gone"),
        ("This account has been terminated for a violation of YouTube's Terms of Service.", "gone"),
        ("Video unavailable. This video isn't available anymore", "gone"),
        ("Unable to download webpage: HTTP Error 410: Gone", "gone"),
        ("Video unavailable. This content isn't available, try again later", "failed"),
        ("Video unavailable", "failed"),
        ("Sign in to confirm you're not a bot", "failed"),
        ("The uploader has not made this video available in your country", "failed"),
        ("unable to download video data: HTTP Error 404: Not Found", "failed"),
        ("unable to download video data: HTTP Error 403: Forbidden", "failed"),
    ],
)
def test_what_the_site_says_is_told_from_what_fails(
    page: str, said: str, status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "stub/yt_dlp.py"
    program.parent.mkdir()
    program.write_text(f"import sys\nsys.exit('WARNING: [youtube] older\\n' + {'ERROR: [youtube] x: ' + said!r})\n")
    monkeypatch.setenv("PYTHONPATH", str(program.parent))
    record = fetch_video(video(url=page), Path("videos"))
    assert (record.status, record.reason, record.attempts) == (status, f"[youtube] x: {said}", 1)


def test_an_unreachable_host_is_a_record() -> None:
    record = fetch_video(video(url=f"{closed()}/a"), Path("videos"))
    assert (record.status, record.attempts) == ("failed", 1)
    assert "is unreachable" in record.reason


@pytest.mark.parametrize("name", ["../../x", "a/b", "/x"])
def test_a_path_for_an_id_is_refused(mirror: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(ReleaseError, match="is not allowed"):
        fetch_video(video(name), Path("videos"))
    assert list(tmp_path.iterdir()) == [mirror]

"""Only what spans need is asked of a real server on the loopback."""

import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepline.availability import Record, read_availability, write_availability
from stepline.download import DownloadOptions, ranged
from stepline.download import fetch_video as fetch_video_
from stepline.download.ranged import RangedFile
from stepline.errors import DownloadError
from stepline.io import sha256_file
from stepline.media.cut import WholeOnlyError, copy_spans, read_header
from tests.conftest import made_once
from tests.download.clip import HEADERS, ffmpeg
from tests.download.test_video import names, video
from tests.file_server import FileServer, serving
from tests.media.clips import make

FOLDER = Path("videos")
SPANS = [[20.2, 21.0], [40.0, 41.5]]
LENGTH_S = 60.0


def _make(folder: Path) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (20, 64, 320, 3), np.uint8)
    sound = (3000 * np.random.default_rng(0).standard_normal(16_000 * 60)).astype(np.int16)
    times = [Fraction(i, 25) for i in range(1500)]
    mixed = make(folder / "mixed.mp4", times, picture=lambda i: noise[i % 20], audio=sound)
    ffmpeg("-i", mixed, "-c", "copy", "-fflags", "+bitexact", folder / "a.mp4")
    ffmpeg("-i", mixed, "-c", "copy", "-an", "-fflags", "+bitexact", folder / "v.mp4")
    ffmpeg("-i", mixed, "-c", "copy", "-vn", "-fflags", "+bitexact", folder / "a.m4a")
    ffmpeg("-i", mixed, "-c", "copy", folder / "a.ts")
    mixed.unlink()


@pytest.fixture(scope="session")
def long_clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_once(tmp_path_factory, "long-clips", _make)


@pytest.fixture
def server(long_clips: Path) -> Iterator[FileServer]:
    with serving(**{path.name: path.read_bytes() for path in sorted(long_clips.iterdir())}) as running:
        yield running


def wanted(server: FileServer, name: str = "a.mp4", **more: Any) -> Any:
    return video(**{"url": f"{server.url}/{name}", "duration_s": LENGTH_S, **more})


def fetch_video(asked: Any, spans: Any = SPANS, **options: Any) -> Record:
    return fetch_video_(asked, FOLDER, DownloadOptions(**{"sleep_s": 0, **options}), HEADERS, spans=spans)


def test_only_what_the_spans_need_is_transferred(server: FileServer, long_clips: Path) -> None:
    record = fetch_video(wanted(server))
    assert (record.status, record.reason, record.attempts, record.spans) == ("present", "", 1, SPANS)
    assert (record.duration_s, record.fps) == (pytest.approx(LENGTH_S, 0.01), pytest.approx(25, 0.01))
    whole = len(server.files["/a.mp4"])
    assert whole > 8_000_000
    assert server.sent < 0.25 * whole
    copy_spans([long_clips / "a.mp4"], Path("local.mp4"), SPANS)
    assert Path(record.path).read_bytes() == Path("local.mp4").read_bytes()
    assert record.sha256 == sha256_file("local.mp4")
    assert names() == ["a.json", "a.mp4"]
    asked = len(server.asked)
    assert fetch_video(wanted(server)) == record
    assert len(server.asked) == asked


def test_fewer_spans_are_there_already_and_others_are_fetched(server: FileServer) -> None:
    first = fetch_video(wanted(server))
    asked = len(server.asked)
    fewer = fetch_video(wanted(server), [[20.3, 20.5]])
    assert fewer == replace(first, spans=[[20.3, 20.5]])
    assert len(server.asked) == asked
    others = fetch_video(wanted(server), [[5.0, 6.0]])
    assert (others.status, others.attempts) == ("present", 2)
    assert others.sha256 != first.sha256
    whole = fetch_video(wanted(server), [])
    assert (whole.status, whole.spans, whole.size) == ("present", [], len(server.files["/a.mp4"]))
    assert fetch_video(wanted(server)) == replace(whole, spans=SPANS)


def test_what_was_deleted_after_use_is_fetched_for_other_spans(server: FileServer) -> None:
    gone = replace(fetch_video(wanted(server)), kept=False)
    (FOLDER / "a.mp4").unlink()
    write_availability(FOLDER / "a.json", [gone])
    assert fetch_video(wanted(server)) == gone
    assert fetch_video(wanted(server), [[5.0, 6.0]]).kept


@pytest.mark.usefixtures("server")
def test_a_file_on_disk_is_linked_whole(long_clips: Path) -> None:
    file = Path("own.mp4").absolute()
    shutil.copy(long_clips / "a.mp4", file)
    record = fetch_video(video(file=str(file), duration_s=None))
    assert (record.spans, record.sha256) == (SPANS, sha256_file(file))
    assert (FOLDER / "a.mp4").resolve() == file


def test_a_listed_sha256_brings_the_whole(server: FileServer, long_clips: Path) -> None:
    record = fetch_video(wanted(server, sha256=sha256_file(long_clips / "a.mp4")))
    assert (record.status, record.reason, record.spans) == ("present", "", SPANS)
    assert record.size == len(server.files["/a.mp4"])


@pytest.mark.parametrize(
    ("name", "how", "why"),
    [
        ("a.mp4", "whole", "its server does not support range requests"),
        ("a.ts", None, "its container cannot seek to a key frame before"),
    ],
)
def test_where_spans_cannot_be_had_the_whole_comes(server: FileServer, name: str, how: str | None, why: str) -> None:
    if how:
        server.next[f"/{name}"] = [how]
    record = fetch_video(wanted(server, name))
    assert record.status == "present"
    assert record.reason.startswith(f"the whole file was downloaded: {why}")
    assert Path(record.path).read_bytes() == server.files[f"/{name}"]
    assert names() == ["a.json", name]


def test_a_busy_server_and_a_cut_are_met_with_another_request(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.next["/a.mp4"] = [503, ("cut", 100_000)]
    record = fetch_video(wanted(server))
    assert (record.status, record.attempts) == ("present", 1)
    copy_of = read_header(FOLDER / "a.mp4")
    assert copy_of.holds == SPANS


@pytest.mark.parametrize(
    ("how", "status", "reason"),
    [
        ([503] * 3, "failed", "HTTP 503 (3 attempts)"),
        ([404], "gone", "HTTP 404"),
        ([403], "failed", "HTTP 403"),
        ([("later", "99")], "failed", "HTTP 429, requests a wait of 99 s"),
        ([("cut", 50_000)] + [503] * 3, "failed", "HTTP 503 (3 attempts)"),
    ],
)
def test_what_fails_is_a_record_and_comes_in_the_next_run(
    server: FileServer, how: list[Any], status: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = wanted(server)
    asked = replace(asked, url=asked.url.replace("//", "//user:SECRET@"))
    server.next["/a.mp4"] = list(how)
    record = fetch_video(asked)
    assert (record.status, record.reason) == (status, f"{server.url}/a.mp4: {reason}")
    assert names() == ["a.json"]
    assert read_availability(FOLDER / "a.json") == {"a": record}
    assert not [path for path in Path().rglob("*") if path.is_file() and b"SECRET" in path.read_bytes()]
    monkeypatch.setenv("STEPLINE_RUN", "next")
    server.next.clear()
    assert fetch_video(asked).status == "present"


def test_a_damaged_file_is_a_record(server: FileServer) -> None:
    server.files["/a.mp4"] = b"<html>Log in</html>"
    record = fetch_video(wanted(server))
    assert record.status == "failed"
    assert "cannot be read" in record.reason
    assert names() == ["a.json"]


def test_a_stalled_server_is_a_record(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HEADERS, "limits", replace(HEADERS.limits, least_s=3, s_per_video_s=0.001))
    server.next["/a.mp4"] = ["", ("stall", 10)]
    record = fetch_video(wanted(server))
    assert (record.status, record.reason) == ("failed", "decoding takes longer than 3 s: see media.limits")
    assert server.left.wait(5), "what downloads outlives who asked for it"
    assert names() == ["a.json"]


# A file that is read by parts


def test_any_part_of_a_file_is_read(server: FileServer) -> None:
    content = server.files["/a.mp4"]
    with RangedFile(f"{server.url}/a.mp4", "a.mp4") as file:
        assert file.seek(-10, 2) == len(content) - 10
        assert file.read(100) == content[-10:]
        assert file.read(100) == b""
        for at in (0, 1000, 500_000, 600_000, 100_000):
            file.seek(at)
            got = b""
            while len(got) < 70_000:
                got += file.read(70_000 - len(got))
            assert got == content[at : at + 70_000]
    ranges = [asked for _, asked in server.gets]
    assert ranges == ["bytes=0-", f"bytes={len(content) - 10}-", *(f"bytes={n}-" for n in (0, 1000, 500_000, 100_000))]


def test_a_file_that_changes_while_it_is_read_is_an_error(server: FileServer) -> None:
    with RangedFile(f"{server.url}/a.mp4", "a.mp4") as file:
        file.read(10)
        server.files["/a.mp4"] = server.files["/a.mp4"][::-1]
        file.seek(5_000_000)
        with pytest.raises(DownloadError, match=r"^a\.mp4: the file changed while it was read$"):
            file.read(10)
        assert isinstance(file.error, DownloadError)
    server.next["/a.mp4"] = ["whole"]
    with RangedFile(f"{server.url}/a.mp4", "a.mp4") as file, pytest.raises(WholeOnlyError):
        file.read(10)


def test_the_rate_is_limited(server: FileServer) -> None:
    began = time.monotonic()
    with RangedFile(f"{server.url}/a.mp4", "a.mp4", rate=400_000) as file:
        left = 400_000
        while left > 0:
            left -= len(file.read(left))
    assert 0.7 < time.monotonic() - began < 5
    assert ranged.SKIPPED < 400_000


# Pages


@pytest.mark.slow
def test_of_a_page_picture_and_sound_come_in_parts(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.download.conftest import SITE

    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.setenv("PYTHONPATH", str(SITE), prepend=":")
    formats = [
        {"format_id": "136", "ext": "mp4", "height": 480, "vcodec": "avc1", "acodec": "none", "url": "/v.mp4"},
        {"format_id": "140", "ext": "m4a", "vcodec": "none", "acodec": "mp4a", "url": "/a.m4a"},
    ]
    for each in formats:
        each |= {"url": f"http://cdn.example.org{each['url']}", "http_headers": {"X-Asked": "yes"}}
    server.files["/z0Ut8daLD6I.json"] = json.dumps({"formats": formats}).encode()
    page = video(url="http://www.youtube.com/watch?v=z0Ut8daLD6I", duration_s=LENGTH_S)
    record = fetch_video(page)
    assert (record.status, record.format) == ("present", "136+140"), record.reason
    assert server.sent < 0.3 * len(server.files["/v.mp4"])
    assert read_header(Path(record.path)).probe.audio_tracks
    assert names() == ["a.json", "a.mp4"]


@pytest.mark.slow
def test_cookies_are_sent_with_the_parts_and_stand_nowhere(server: FileServer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    cookies = home / "cookies.txt"
    cookies.write_text("# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t4102444800\tsession\tSECRET\n")
    server.files["/page.html"] = b'<html><title>A soup</title><video src="/a.mp4"></video></html>'
    record = fetch_video(wanted(server, "page.html"), cookies=str(cookies))
    assert (record.status, record.spans) == ("present", SPANS), record.reason
    assert {request.headers["Cookie"] for request in server.requests} == {"session=SECRET"}
    assert server.sent < 0.25 * len(server.files["/a.mp4"])
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != cookies]
    assert not [path for path in written if b"SECRET" in path.read_bytes()]

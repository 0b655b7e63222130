"""The real command yt-dlp, asked for pages of a real server on the loopback; most times forked, as it starts slowly."""

import json
import logging
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepline.availability import Record, read_availability
from stepline.download import DownloadOptions, yt_dlp
from stepline.download import fetch_video as fetch_video_
from tests import forked
from tests.conftest import ROOT
from tests.download.clip import HEADERS
from tests.download.test_video import FOLDER, names, video
from tests.file_server import FileServer

pytestmark = pytest.mark.slow
ID = "z0Ut8daLD6I"
PLAYED = f"http://www.youtube.com/watch?v={ID}"


def fork(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the command yt-dlp as ``subprocess.run`` would; its files are those of this process."""
    assert (command[1:3], options["capture_output"]) == (["-c", yt_dlp.YT_DLP], True)
    arguments = [word.replace("/dev/fd/", f"/proc/{os.getpid()}/fd/") for word in command[3:]]
    done = forked.run("yt_dlp", arguments, Path.cwd(), dict(os.environ))
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.encode(), done.stderr.encode())


@pytest.fixture(autouse=True)
def _forked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "started" not in request.fixturenames:
        monkeypatch.setattr(yt_dlp, "subprocess", SimpleNamespace(run=fork))


@pytest.fixture
def started() -> None:
    """Start yt-dlp as users do."""


def fetch_video(url: str, **options: Any) -> Record:
    return fetch_video_(video(url=url), FOLDER, DownloadOptions(**{"sleep_s": 0, **options}), HEADERS)


# Pages


@pytest.mark.usefixtures("started")
def test_the_video_of_a_page_comes_once_and_its_record_says_what_it_is(server: FileServer, ffmpeg: Path) -> None:
    url = f"{server.url}/page.html"
    record = fetch_video(url)
    assert (record.status, record.reason, record.attempts, record.source) == ("present", "", 1, url)
    assert record.downloader == f"yt-dlp {version('yt-dlp')}"
    assert record.format == "0"
    assert (record.codec, record.width, record.height, record.fps, record.duration_s) == ("h264", 64, 48, 10.0, 3.0)
    assert Path(record.path).read_bytes() == server.files["/a.mp4"]
    assert names() == ["a.json", "a.mp4"]
    asked = len(server.asked)
    assert fetch_video(url) == record
    assert len(server.asked) == asked


def test_a_page_whose_file_is_not_there_is_failed(server: FileServer) -> None:
    del server.files["/a.mp4"]
    record = fetch_video(f"{server.url}/page.html")
    assert (record.status, record.attempts) == ("failed", 1)
    assert "HTTP Error 404" in record.reason
    assert "\n" not in record.reason


@pytest.mark.usefixtures("started")
def test_a_page_whose_headers_never_end_is_left(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yt_dlp, "LONGEST_S", 2.0)
    server.next["/page"] = [("raw", "|HTTP/1.1 100 Continue\r\n\r\n")]
    record = fetch_video(f"{server.url}/page")
    assert (record.status, record.reason) == ("failed", "yt-dlp did not end in 2 s; the next run continues")


def test_a_page_that_is_not_there_is_gone(server: FileServer) -> None:
    record = fetch_video(f"{server.url}/no page")
    assert record.status == "gone"
    assert "HTTP Error 404" in record.reason


def test_a_page_without_a_video_is_failed(server: FileServer) -> None:
    server.files["/text.html"] = b"<html>nothing to see</html>"
    record = fetch_video(f"{server.url}/text.html")
    assert record.status == "failed"
    assert "Unsupported URL" in record.reason


@pytest.mark.parametrize("path", ["/page.html", "/a.mp4"])
def test_a_busy_site_is_asked_again(server: FileServer, path: str) -> None:
    server.next[path] = [503]
    assert fetch_video(f"{server.url}/page.html").status == "present"
    assert [asked for asked, _ in server.gets].count(path) >= 2


def test_a_site_that_stays_busy_is_failed_after_three_attempts(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _: None)
    server.next["/page.html"] = [503] * 9
    record = fetch_video(f"{server.url}/page.html")
    assert (record.status, len(server.gets)) == ("failed", 3)
    assert "HTTP Error 503" in record.reason
    assert "(3 attempts)" in record.reason


@pytest.mark.parametrize("how", ["cut", "stall"])
def test_a_transfer_that_ends_early_is_resumed(server: FileServer, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yt_dlp, "STALL_S", 1.0)
    whole = server.files["/a.mp4"]
    server.next["/a.mp4"] = [(how, 100_000)]
    record = fetch_video(f"{server.url}/page.html")
    assert record.status == "present", record.reason
    assert Path(record.path).read_bytes() == whole
    assert server.gets[-1][1].startswith("bytes=")


# What a site says


SAID = [
    ({"reason": "Private video. Sign in if you've been granted access to this video."}, "gone"),
    ({"reason": "Video unavailable. This video is private"}, "gone"),
    ({"reason": "Video unavailable. This video has been removed by the uploader"}, "gone"),
    ({"reason": "This video has been removed for violating YouTube's Terms of Service"}, "gone"),
    (
        {"reason": "This video is no longer available because the account associated with it has been terminated."},
        "gone",
    ),
    ({"reason": "Video unavailable. This video is no longer available due to a copyright claim by Soup Ltd"}, "gone"),
    ({"reason": "Video unavailable. This video isn't available anymore"}, "gone"),
    ({"reason": "Video unavailable. This content isn't available, try again later"}, "failed"),
    ({"reason": "Video unavailable"}, "failed"),
    ({"reason": "Premieres in 4 hours"}, "failed"),
    ({"geo": "The uploader has not made this video available in your country"}, "failed"),
]
ACCOUNT = [
    {"reason": "Sign in to confirm your age. This video may be inappropriate for some users."},
    {"reason": "Sign in to confirm you're not a bot."},
    {"reason": "Join this channel to get access to members-only content like this video, and other exclusive perks."},
    {"login": "This video is only available for registered users"},
]


@pytest.mark.parametrize(("answer", "status"), [SAID[0], SAID[7], SAID[-1]])
def test_what_the_site_says_is_the_reason(youtube: FileServer, answer: dict[str, str], status: str) -> None:
    youtube.files[f"/{ID}.json"] = json.dumps(answer).encode()
    record = fetch_video(PLAYED)
    assert (record.status, record.attempts) == (status, 1)
    (said,) = answer.values()
    assert record.reason.startswith(f"[youtube+played] {ID}: {said.rstrip('.')}")
    assert "--cookies" not in record.reason
    assert "download.cookies" not in record.reason
    assert "ffmpeg" not in record.reason
    assert [path for path, _ in youtube.gets] == [f"/{ID}.json"]
    assert names() == ["a.json"]


@pytest.mark.parametrize(("answer", "status"), SAID)
def test_a_reason_as_yt_dlp_prints_it_says_whether_the_video_is_gone(
    answer: dict[str, str], status: str, youtube: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (said,) = answer.values()
    monkeypatch.setattr(yt_dlp, "_run", lambda *_: (1, [], [f"ERROR: [youtube+played] {ID}: {said}"]))
    record = fetch_video(PLAYED)
    assert (record.status, record.attempts) == (status, 1)
    assert record.reason == f"[youtube+played] {ID}: {said.rstrip('.')}"


@pytest.mark.parametrize("answer", ACCOUNT)
def test_what_an_account_may_see_is_failed_and_names_the_option(youtube: FileServer, answer: dict[str, str]) -> None:
    youtube.files[f"/{ID}.json"] = json.dumps(answer).encode()
    record = fetch_video(PLAYED)
    assert record.status == "failed"
    (said,) = answer.values()
    assert record.reason.startswith(f"[youtube+played] {ID}: {said.rstrip('.')}")
    assert "; cookies of an account may help: set download.cookies" in record.reason
    assert "--cookies" not in record.reason


ENOUGH = [
    429,
    {"reason": "Sign in to confirm you're not a bot"},
    {"reason": "This content isn't available, try again later. The current session has been rate-limited by YouTube"},
]


@pytest.mark.parametrize("answer", ENOUGH)
def test_a_site_that_has_had_enough_is_left_alone_until_the_next_run(
    youtube: FileServer, answer: int | dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPLINE_RUN", "run-1")
    youtube.files[f"/{ID}.json"] = json.dumps(answer).encode()
    youtube.next[f"/{ID}.json"] = [answer] if isinstance(answer, int) else []
    first = fetch_video(PLAYED)
    assert (first.status, len(youtube.gets)) == ("failed", 1)
    second = fetch_video(PLAYED)
    assert (second.status, len(youtube.gets)) == ("failed", 1)
    assert second.reason.startswith(f"www.youtube.com is left alone until the next run: [youtube+played] {ID}: ")
    monkeypatch.setenv("STEPLINE_RUN", "run-2")
    offer(youtube, EVERY[1])
    assert fetch_video(PLAYED).status == "present"


# Formats


def offer(server: FileServer, *formats: tuple[str, str, int | None]) -> None:
    """Let the site offer formats: id, file and lines; ``v.mp4`` has no sound, ``a.m4a`` no picture."""
    listed = [
        {
            "format_id": name,
            "url": f"http://www.youtube.com/{file}",
            "ext": Path(file).suffix[1:],
            "height": height,
            "vcodec": "none" if file == "a.m4a" else "h264",
            "acodec": "none" if file == "v.mp4" else "aac",
        }
        for name, file, height in formats
    ]
    server.files[f"/{ID}.json"] = json.dumps({"formats": listed}).encode()


EVERY = (("140", "a.m4a", None), ("18", "a.mp4", 360), ("136", "v.mp4", 720), ("137", "v.mp4", 1080))


def test_with_ffmpeg_picture_and_sound_are_merged(youtube: FileServer, ffmpeg: Path) -> None:
    offer(youtube, *EVERY)
    record = fetch_video(PLAYED)
    assert (record.status, record.format, record.path) == ("present", "136+140", "videos/a.mp4")
    assert (record.codec, record.duration_s) == ("h264", pytest.approx(3.0, abs=0.1))
    assert "ffmpeg" not in record.reason
    assert names() == ["a.json", "a.mp4"]


@pytest.mark.usefixtures("programs")
def test_without_ffmpeg_one_file_is_taken_and_the_record_says_so(youtube: FileServer) -> None:
    offer(youtube, *EVERY)
    record = fetch_video(PLAYED)
    assert (record.status, record.format) == ("present", "18")
    assert record.reason.startswith("without ffmpeg, which merges picture and sound")


@pytest.mark.usefixtures("programs")
def test_what_only_ffmpeg_could_merge_is_one_line_and_nothing_is_fetched(youtube: FileServer) -> None:
    offer(youtube, EVERY[0], EVERY[2])
    record = fetch_video(PLAYED)
    assert record.status == "failed"
    assert record.reason.startswith("there is no mp4 of at most 720 lines with picture and sound; without ffmpeg")
    assert [path for path, _ in youtube.gets] == [f"/{ID}.json"]


@pytest.mark.parametrize(("lines", "taken"), [(1080, "137+140"), (360, "18"), (240, "")])
def test_the_height_is_limited(youtube: FileServer, ffmpeg: Path, lines: int, taken: str) -> None:
    offer(youtube, *EVERY)
    record = fetch_video(PLAYED, max_height=lines)
    assert record.format == taken
    if not taken:
        assert record.reason.startswith(f"there is no mp4 of at most {lines} lines")


PLAYLIST = b"""#EXTM3U
#EXT-X-TARGETDURATION:3
#EXTINF:3,
/v.mp4
#EXTINF:3,
/lost.mp4
#EXT-X-ENDLIST
"""


def test_a_video_with_a_missing_fragment_is_failed(youtube: FileServer, ffmpeg: Path) -> None:
    offer(youtube, EVERY[0], ("95", "v.m3u8", 720))
    listed = json.loads(youtube.files[f"/{ID}.json"])
    listed["formats"][1] |= {"ext": "mp4", "protocol": "m3u8_native", "acodec": "none"}
    youtube.files |= {f"/{ID}.json": json.dumps(listed).encode(), "/v.m3u8": PLAYLIST}
    record = fetch_video(PLAYED)
    assert "/lost.mp4" in [path for path, _ in youtube.gets]
    assert record.status == "failed"
    assert not [name for name in names() if name.endswith(".mp4")]


# The programs that it needs


@pytest.mark.usefixtures("programs")
def test_without_javascript_youtube_is_tried_with_a_warning_and_a_reason(
    youtube: FileServer, caplog: pytest.LogCaptureFixture
) -> None:
    yt_dlp._warn.cache_clear()
    offer(youtube, *EVERY)
    with caplog.at_level(logging.WARNING):
        for name in "ab":
            record = fetch_video_(video(name, url=PLAYED), FOLDER, DownloadOptions(sleep_s=0), HEADERS)
            assert record.status == "present"
            assert "without a JavaScript runtime (none found)" in record.reason
    assert len([line for line in caplog.messages if "JavaScript runtime" in line]) == 1
    offer(youtube)
    failed = fetch_video_(video("c", url=PLAYED), FOLDER, DownloadOptions(sleep_s=0), HEADERS)
    assert (failed.status, "without a JavaScript runtime" in failed.reason) == ("failed", True)
    page = fetch_video_(video("d", url=f"{youtube.url}/page.html"), FOLDER, DownloadOptions(sleep_s=0), HEADERS)
    assert "JavaScript" not in page.reason


@pytest.mark.parametrize(
    ("program", "says", "found"),
    [
        ("node", "v20.20.2", False),
        ("node", "v22.1.0", True),
        ("bun", "1.2.11", True),
        ("deno", "deno 2.3.0", True),
        ("qjs", "QuickJS version 2025-09-13", True),
    ],
)
def test_any_supported_runtime_is_enabled(
    youtube: FileServer, programs: Path, program: str, says: str, found: bool
) -> None:
    (programs / program).write_text(f'#!/bin/sh\necho "{says}"\n')
    (programs / program).chmod(0o755)
    offer(youtube, *EVERY)
    reason = fetch_video(PLAYED).reason
    assert ("a JavaScript runtime" not in reason) is found
    if not found:
        assert "a JavaScript runtime (node-20.20.2 (unsupported) found)" in reason


def test_a_users_own_configuration_of_yt_dlp_changes_nothing(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home/yt-dlp").mkdir(parents=True)
    (tmp_path / "home/yt-dlp/config").write_text("--simulate\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    assert fetch_video(f"{server.url}/page.html").status == "present"


# Options


@pytest.mark.usefixtures("started")
def test_cookies_are_sent_and_stand_nowhere(server: FileServer, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    cookies = home / "cookies.txt"
    cookies.write_text("# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t4102444800\tsession\tSECRET\n")
    cookies.chmod(0o400)
    before = cookies.read_bytes(), cookies.stat().st_mtime_ns
    assert fetch_video(f"{server.url}/page.html", cookies=str(cookies)).status == "present"
    assert {request.headers["Cookie"] for request in server.requests} == {"session=SECRET"}
    assert (cookies.read_bytes(), cookies.stat().st_mtime_ns) == before
    server.next["/page.html"] = [403]
    record = fetch_video_(
        video("b", url=f"{server.url}/page.html"), FOLDER, DownloadOptions(sleep_s=0, cookies=str(cookies)), HEADERS
    )
    assert record.status == "failed"
    assert os.listdir(home) == ["cookies.txt"]
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != cookies]
    assert written
    assert not [path for path in written if b"SECRET" in path.read_bytes()]


def test_the_rate_is_limited(server: FileServer) -> None:
    began = time.monotonic()
    fetch_video(f"{server.url}/page.html", rate_limit="100K")  # of 241 K
    assert time.monotonic() - began > 2.25


def test_requests_and_downloads_are_paused(server: FileServer) -> None:
    fetch_video(f"{server.url}/page.html", sleep_s=1.5)
    assert [path for _, path, _ in server.asked] == ["/", "/page.html", "/a.mp4"]
    assert server.log[2].at - server.log[1].at > 1.5


# Kills


FETCH = """
import os
from pathlib import Path
from stepline.datasets.schema import Video
from stepline.download import DownloadOptions, fetch_video
from stepline.media.headers import Headers
from stepline.media.process import Limits
headers = Headers(Limits(memory_mb=1000, least_s=120, s_per_video_s=4))
fetch_video(Video(id="a", url=os.environ["ADDRESS"]), Path("videos"), DownloadOptions(sleep_s=0), headers)
"""


@pytest.mark.parametrize("page", ["a.mp4", "page.html"])
def test_a_killed_fetch_goes_on_where_it_stopped(server: FileServer, page: str) -> None:
    url = f"{server.url}/{page}".replace("//", "//user:SECRET@")
    server.next["/a.mp4"] = [("stall", 150_000)]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "ADDRESS": url}
    process = subprocess.Popen([sys.executable, "-c", FETCH], env=environment)
    deadline = time.monotonic() + 60
    while sum(part.stat().st_size for part in FOLDER.rglob("*.part")) < 100_000:
        assert time.monotonic() < deadline
        assert process.poll() is None
        time.sleep(0.05)
    assert not server.left.is_set()
    assert b"SECRET" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, check=True).stdout
    process.kill()
    process.wait()
    assert server.left.wait(5), "what downloads outlives who asked for it"
    record = fetch_video(url)
    assert record.status == "present", record.reason
    assert Path(record.path).read_bytes() == server.files["/a.mp4"]
    resumed = server.gets[-1][1]
    assert resumed.startswith("bytes=")
    assert int(resumed[6:-1]) >= 100_000
    assert names() == ["a.json", "a.mp4"]
    assert read_availability(FOLDER / "a.json") == {"a": record}

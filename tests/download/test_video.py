import hashlib
import os
import shutil
import time
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NoReturn

import pytest

from stepline.availability import Record, read_availability, write_availability
from stepline.datasets.schema import Video
from stepline.download import DownloadOptions, remove_leftovers
from stepline.download import fetch_video as fetch_video_
from stepline.errors import ConfigError, ReleaseError
from tests.download.clip import DURATION_S, HEADERS, cut
from tests.download.test_host import closed
from tests.file_server import FileServer

FOLDER = Path("videos")
SPANS = [[0.5, 1.0]]


def video(name: str = "a", **more: Any) -> Video:
    return Video(**{"id": name, "duration_s": DURATION_S, "path": f"study/videos/{name}.mp4", **more})


def fetch_video(wanted: Video, **more: Any) -> Record:
    return fetch_video_(wanted, FOLDER, DownloadOptions(sleep_s=0), more.pop("headers", HEADERS), **more)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def names() -> list[str]:
    return sorted(path.name for path in FOLDER.iterdir())


# The mirror and the user's own files


def test_a_video_in_the_mirror_is_linked_not_copied(mirror: Path, clips: Path) -> None:
    shutil.copy(clips / "a.mp4", mirror)
    record = fetch_video(video())
    path = FOLDER / "a.mp4"
    assert path.is_symlink()
    assert path.resolve() == mirror / "a.mp4"
    assert record == Record(
        video="a",
        status="present",
        path=str(path),
        sha256=digest(path),
        size=path.stat().st_size,
        source="mirror",
        codec="h264",
        width=64,
        height=48,
        fps=10.0,
        duration_s=3.0,
        pixels="1:1",
        headers=2,
    )
    assert fetch_video(video()) == record


def test_of_a_file_with_the_same_bytes_no_header_is_read_and_nothing_is_written(mirror: Path, clips: Path) -> None:
    held, memory = Path(shutil.copy(clips / "a.mp4", mirror)), FOLDER / "a.json"
    first, written = fetch_video(video(), stamp="1"), memory.stat()
    os.utime(held)

    def never(path: Path) -> NoReturn:
        pytest.fail(f"the header of {path} is read")

    assert fetch_video(video(), stamp="1", headers=never) == first
    assert memory.stat() == written
    assert fetch_video(video(duration_s=9), headers=never).status == "mismatched"
    assert fetch_video(video(), headers=HEADERS) == replace(first, stamp="")
    for other in ({"headers": 0}, {"spans": SPANS}):
        write_availability(memory, [replace(first, **other)])
        assert fetch_video(video(), stamp="1", headers=HEADERS) == first
        write_availability(memory, [replace(first, **other)])
        with pytest.raises(pytest.fail.Exception):
            fetch_video(video(), headers=never)


def test_a_video_that_vanished_from_the_mirror_is_missing(mirror: Path, clips: Path) -> None:
    held = shutil.copy(clips / "a.mp4", mirror)
    fetch_video(video())
    Path(held).unlink()
    record = fetch_video(video())
    assert (record.status, record.reason) == ("missing", "not in the mirror at study/videos/a.mp4")
    assert names() == ["a.json"]
    shutil.copy(clips / "a.mp4", mirror)
    assert fetch_video(video()).status == "present"


def test_another_file_in_the_mirror_is_followed(mirror: Path, clips: Path) -> None:
    shutil.copy(clips / "a.mp4", mirror)
    first = fetch_video(video())
    shutil.copy(clips / "v.mp4", mirror / "a.mp4")
    assert fetch_video(video()).sha256 == digest(clips / "v.mp4") != first.sha256


@pytest.mark.parametrize("duration_s", [5.2, 0.5, None])
def test_a_wrong_file_is_mismatched_with_both_numbers(mirror: Path, clips: Path, duration_s: float | None) -> None:
    shutil.copy(clips / "a.mp4", mirror)
    record = fetch_video(video(duration_s=duration_s))
    if duration_s is None:
        assert (record.status, record.duration_s) == ("present", 3.0)
    else:
        assert (record.status, record.reason) == ("mismatched", f"wrong duration: 3.0 s, listed with {duration_s} s")
    record = fetch_video(video(sha256="0" * 64))
    sha256 = digest(clips / "a.mp4")
    assert record.status == "mismatched"
    assert record.reason == f"wrong checksum: sha256 is {sha256}, expected {'0' * 64}"


@pytest.mark.parametrize("duration_s", [1.01, 4.99])
def test_two_seconds_or_one_per_cent_are_no_other_file(mirror: Path, clips: Path, duration_s: float) -> None:
    shutil.copy(clips / "a.mp4", mirror)
    assert fetch_video(video(duration_s=duration_s)).status == "present"


def test_ones_own_file_may_have_any_name(tmp_path: Path, clips: Path) -> None:
    file = os.fsdecode(os.fsencode(tmp_path) + b"/Gr\xfcn.mp4")
    shutil.copy(clips / "a.mp4", file)
    record = fetch_video(video("料理", file=file))
    assert (record.status, record.source) == ("present", f"{tmp_path}/Gr%FCn.mp4")
    assert (record.path, os.path.realpath(record.path)) == (str(FOLDER / "料理.mp4"), os.path.realpath(file))
    os.unlink(file)
    record = fetch_video(video("料理", file=file))
    assert (record.status, record.reason) == ("missing", f"{tmp_path}/Gr%FCn.mp4: no such file")
    assert names() == ["料理.json"]


def test_what_is_no_file_is_a_record_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.mp4")
    record = fetch_video(video("a", file=str(tmp_path / "a.mp4")))
    assert (record.status, record.reason) == ("failed", f"{tmp_path}/a.mp4: a pipe, not a file")
    assert names() == ["a.json"]


def test_ones_own_file_is_linked_under_its_suffix(tmp_path: Path, clips: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for name, link in (("a.webm", "x.webm"), ("a.mp4", "x.mp4")):
        file = own / f"My {name}".upper()
        shutil.copy(clips / name, file)
        record = fetch_video(video("x", file=str(file)))
        assert (record.status, record.source, record.path) == ("present", str(file), str(FOLDER / link))
        assert names() == ["x.json", link]
        assert (FOLDER / link).resolve() == file
    file.unlink()
    record = fetch_video(video("x", file=str(file)))
    assert (record.status, record.reason) == ("missing", f"{file}: no such file")
    assert names() == ["x.json"]


def test_an_image_is_a_video_of_one_frame_and_keeps_its_suffix(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    for name, link in (("A.JPG", "x.jpg"), ("a.png", "x.png")):
        image.new("RGB", (64, 48), "red").save(tmp_path / name)
        record = fetch_video(video("x", duration_s=None, file=str(tmp_path / name)))
        assert (record.status, record.path, record.width) == ("present", str(FOLDER / link), 64)
        assert names() == sorted([link, "x.json"])


@pytest.mark.parametrize("name", ["a.m4a", "text.mp4", "x.json"])
def test_what_is_no_video_is_failed_and_stays(tmp_path: Path, clips: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text("no video")
    if (clips / name).exists():
        shutil.copy(clips / name, file)
    before = file.read_bytes()
    record = fetch_video(video("x", file=str(file)))
    assert record.status == "failed"
    assert record.reason == "no video stream" if name == "a.m4a" else "cannot be decoded" in record.reason
    assert file.read_bytes() == before


def test_what_is_nowhere_is_missing() -> None:
    record = fetch_video(video(path=""))
    assert (record.status, record.reason, record.attempts) == ("missing", "it is listed without an address", 0)


# Direct files


def test_a_direct_file_is_downloaded_once(server: FileServer, clips: Path) -> None:
    wanted = video(url=f"{server.url}/a.mp4?part=1", sha256=digest(clips / "a.mp4"))
    server.files["/a.mp4?part=1"] = server.files["/a.mp4"]
    record = fetch_video(wanted)
    assert (record.status, record.source, record.attempts) == ("present", wanted.url, 1)
    assert (record.downloader, record.format, record.codec) == (f"httpx {version('httpx')}", "", "h264")
    assert fetch_video(wanted) == record
    assert len(server.gets) == 1


def test_a_direct_file_keeps_its_suffix_and_replaces_one_of_another(server: FileServer, mirror: Path) -> None:
    (mirror / "a.mp4").write_bytes(server.files["/a.mp4"])
    fetch_video(video())
    (mirror / "a.mp4").unlink()
    record = fetch_video(video(url=f"{server.url}/a.webm"))
    assert (record.status, record.path, record.codec) == ("present", "videos/a.webm", "vp8")
    assert names() == ["a.json", "a.webm"]


def test_failures_are_recorded_and_counted_until_it_comes(server: FileServer) -> None:
    wanted = video(url=f"{server.url}/a.mp4")
    server.next["/a.mp4"] = [401, 404, 410]
    for attempts, (status, code) in enumerate((("failed", 401), ("gone", 404), ("gone", 410)), start=1):
        record = fetch_video(wanted)
        assert (record.status, record.attempts) == (status, attempts)
        assert record.reason == f"{wanted.url}: HTTP {code}"
        assert read_availability(FOLDER / "a.json") == {"a": record}
        withdrawn = fetch_video(video())
        assert (withdrawn.status, withdrawn.attempts) == ("missing", attempts)
    record = fetch_video(wanted)
    assert (record.status, record.reason, record.attempts) == ("present", "", 4)
    assert read_availability(FOLDER / "a.json") == {"a": record}


def test_what_no_later_download_goes_on_from_is_removed(server: FileServer) -> None:
    server.next["/a.mp4"] = [("cut", 1000), 404]
    cut = replace(fetch_video(video(url=f"{server.url}/a.mp4")), status="failed")
    hidden = {".a.mp4.part", ".a.mp4.version"}
    assert hidden < set(names())
    (FOLDER / ".b.mp4.part").touch()
    (FOLDER / ".a.yt-dlp").mkdir()
    remove_leftovers(FOLDER, [cut])
    assert set(names()) == {*hidden, ".a.yt-dlp", ".b.mp4.part", "a.json"}
    remove_leftovers(FOLDER, [fetch_video(video(url=f"{server.url}/a.webm"))])
    assert names() == [".b.mp4.part", "a.json", "a.webm"]


def test_a_direct_file_with_another_checksum_is_mismatched(server: FileServer) -> None:
    record = fetch_video(video(url=f"{server.url}/a.mp4", sha256="0" * 64))
    assert record.status == "mismatched"
    assert f"expected {'0' * 64}" in record.reason
    assert names() == ["a.json"]


def test_what_came_and_is_no_video_is_fetched_again_the_next_time(server: FileServer) -> None:
    wanted = video(url=f"{server.url}/a.mp4")
    whole, server.files["/a.mp4"] = server.files["/a.mp4"], b"<html>Log in</html>"
    record = fetch_video(wanted)
    assert (record.status, record.attempts) == ("failed", 1)
    assert "cannot be decoded" in record.reason
    assert (FOLDER / "a.mp4").read_bytes() == b"<html>Log in</html>"
    server.next["/a.mp4"] = [401]
    assert fetch_video(wanted).reason.endswith("HTTP 401")
    assert (FOLDER / "a.mp4").exists()
    server.files["/a.mp4"] = whole
    record = fetch_video(wanted)
    assert (record.status, record.reason, record.attempts) == ("present", "", 3)


# Spans


def had_cut(whole: Path, path: Path) -> None:
    """Write a file as earlier versions downloaded it for spans of a video, and its record."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cut(whole, path)
    about = {"path": str(FOLDER / "a.mp4"), "sha256": digest(path), "size": path.stat().st_size}
    about |= {"codec": "h264", "width": 64, "height": 48, "fps": 10.0, "duration_s": 3.0, "pixels": "1:1", "headers": 2}
    record = Record(video="a", status="present", spans=SPANS, attempts=1, downloader="httpx 0.28.1", **about)
    write_availability(FOLDER / "a.json", [record])


def test_a_video_of_which_spans_are_read_comes_whole(server: FileServer) -> None:
    record = fetch_video(video(url=f"{server.url}/a.mp4"), spans=SPANS)
    assert (record.status, record.reason, record.spans, record.attempts) == ("present", "", SPANS, 1)
    assert Path(record.path).read_bytes() == server.files["/a.mp4"]
    asked = len(server.asked)
    assert fetch_video(video(url=f"{server.url}/a.mp4"), spans=[]) == replace(record, spans=[])
    assert len(server.asked) == asked


@pytest.mark.parametrize("spans", [SPANS, [[0.6, 0.8]], []])
def test_a_file_of_parts_of_a_video_is_downloaded_again(server: FileServer, clips: Path, spans: Any) -> None:
    had_cut(clips / "a.mp4", FOLDER / "a.mp4")
    record = fetch_video(video(url=f"{server.url}/a.mp4"), spans=spans)
    assert (record.status, record.reason, record.spans, record.attempts) == ("present", "", spans, 2)
    assert (record.sha256, record.duration_s) == (digest(clips / "a.mp4"), 3.0)
    assert names() == ["a.json", "a.mp4"]


def test_a_file_of_parts_of_a_video_in_the_mirror_is_refused(mirror: Path, clips: Path) -> None:
    for spans in (SPANS, []):
        had_cut(clips / "a.mp4", mirror / "a.mp4")
        record = fetch_video(video(), spans=spans)
        assert record.status == "failed"
        assert record.reason.startswith("an earlier version downloaded only parts of this video")


def test_what_was_deleted_after_use_is_fetched_for_other_spans(server: FileServer) -> None:
    wanted = video(url=f"{server.url}/a.mp4")
    gone = replace(fetch_video(wanted, spans=SPANS), kept=False)
    (FOLDER / "a.mp4").unlink()
    write_availability(FOLDER / "a.json", [gone])
    assert fetch_video(wanted, spans=SPANS) == gone
    assert fetch_video(wanted, spans=[[2.0, 2.5]]).kept


def test_the_rate_limit_is_for_direct_files_too(server: FileServer) -> None:
    began = time.monotonic()
    fetch_video_(video(url=f"{server.url}/a.mp4"), FOLDER, DownloadOptions(rate_limit="240K"), HEADERS)
    assert 0.9 < time.monotonic() - began < 4


def test_what_was_used_and_deleted_is_not_downloaded_again_unless_asked(server: FileServer, mirror: Path) -> None:
    wanted = video(url=f"{server.url}/a.mp4")
    came = fetch_video(wanted)
    (FOLDER / "a.mp4").unlink()
    gone = replace(came, kept=False)
    write_availability(FOLDER / "a.json", [gone])
    assert fetch_video(wanted) == gone
    assert fetch_video(replace(wanted, sha256=came.sha256)) == gone
    assert names() == ["a.json"]
    assert len(server.gets) == 1
    again = fetch_video(wanted, again=True)
    assert again == replace(came, attempts=2)
    (FOLDER / "a.mp4").unlink()

    write_availability(FOLDER / "a.json", [gone])
    assert fetch_video(replace(wanted, sha256="0" * 64)).status == "mismatched"
    write_availability(FOLDER / "a.json", [gone])
    (mirror / "a.mp4").write_bytes(server.files["/v.mp4"])
    record = fetch_video(wanted)
    assert (record.status, record.kept, record.source) == ("present", True, "mirror")


def test_names_and_passwords_are_written_nowhere(server: FileServer, tmp_path: Path) -> None:
    address = server.url.replace("//", "//user:SECRET@")
    server.next["/a.mp4"] = [403]
    for _ in range(2):
        fetch_video(video(url=f"{address}/a.mp4"))
    fetch_video(video("b", url=closed().replace("//", "//user:SECRET@") + "/b.mp4"))
    fetch_video(video("c", url=f"{address}/c.mp4", sha256="0" * 64))
    fetch_video(video("d", url=f"{address}/gone"))
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len([path for path in written if path.suffix == ".json"]) == 6
    assert not [path for path in written if "SECRET" in f"{path}{path.read_bytes()!r}"]


@pytest.mark.parametrize("url", ["http://[zz]/a.mp4", "http://[zz]/page", f"http://{'a' * 300}.invalid/a.mp4"])
def test_an_address_that_cannot_be_is_a_record(url: str) -> None:
    record = fetch_video(video(url=url))
    assert record.status == "failed"
    assert record.reason


def test_an_unreachable_host_is_a_record() -> None:
    for suffix in (".mp4", ""):
        record = fetch_video(video(f"a{suffix}", url=f"{closed()}/a{suffix}"))
        assert (record.status, record.attempts) == ("failed", 1)
        assert "is unreachable" in record.reason


@pytest.mark.parametrize("name", ["../../x", "a/b", "/x"])
def test_a_path_for_an_id_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="is not allowed"):
        fetch_video(video(name))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("content", [None, "", '[{"name": "SECRET"}]', "# Netscape HTTP Cookie File\nSECRET\n", "\xff"])
def test_cookies_that_are_none_are_one_line_at_the_door(content: str | None, tmp_path: Path) -> None:
    path = tmp_path / "cookies.txt"
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
    with pytest.raises(ConfigError) as error:
        DownloadOptions(cookies=str(path))
    assert str(error.value).startswith(f"download.cookies: {path} ")
    assert "\n" not in str(error.value)
    assert "SECRET" not in str(error.value)

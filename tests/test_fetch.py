import hashlib
import json
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from stepline import fetch
from stepline.availability import read_availability
from stepline.config import validate
from stepline.datasets import shards
from stepline.datasets.schema import Video
from stepline.datasets.spacewalk import ReleaseFile
from stepline.datasets.studies import STUDIES, Study
from stepline.errors import ConfigError, DownloadError, MissingError, ReleaseError
from stepline.fetch import fetch_release, fetch_videos, fetch_weights
from stepline.io import read_json
from stepline.mirror import Wanted
from tests.file_server import FileServer, serving

FILES = {
    "data/annotation.json": b'{"annotation": 1}' * 50,
    "data/steps.json": b'{"steps": 2}' * 50,
    "tasks/split.json": b'{"split": 3}',
}
FOLDER = Path("datasets/demo/v1")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving() as running:
        yield running


@pytest.fixture
def study(server: FileServer) -> Study:
    """A study with one pinned release, which the server could have."""
    files = tuple(
        ReleaseFile(
            path=path,
            wanted=Wanted(path=f"demo/v1/{path}", sha256=sha256(content), size=len(content)),
            url=f"{server.url}/{path}",
        )
        for path, content in FILES.items()
    )
    return replace(STUDIES["demo"], release_files=lambda _: files)


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A mirror that holds the release under other names."""
    folder = tmp_path / "mirror"
    (folder / "v1").mkdir(parents=True)
    for path, content in FILES.items():
        (folder / "v1" / Path(path).name).write_bytes(content)
    monkeypatch.setenv("STEPLINE_MIRROR", str(folder))
    return folder


def on_server(server: FileServer, **changed: bytes) -> None:
    server.files |= {f"/{path}": changed.get(Path(path).stem, content) for path, content in FILES.items()}


def refused(study: Study) -> str:
    with pytest.raises(ReleaseError) as error:
        fetch_release(study, "v1")
    assert not (FOLDER / "release.json").exists()
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_release_comes_from_renamed_files_of_a_mirror(study: Study, mirror: Path, server: FileServer) -> None:
    manifest = fetch_release(study, "v1")
    assert manifest == FOLDER / "release.json"
    assert read_json(manifest) == {
        "study": "demo",
        "release": "v1",
        "files": {path: sha256(content) for path, content in FILES.items()},
    }
    assert {path: (FOLDER / path).read_bytes() for path in FILES} == FILES
    assert not any((FOLDER / path).is_symlink() for path in FILES)
    assert server.asked == []


def test_a_release_comes_from_the_network_where_the_mirror_lacks_it(study: Study, server: FileServer) -> None:
    on_server(server)
    fetch_release(study, "v1")
    assert {path: (FOLDER / path).read_bytes() for path in FILES} == FILES
    assert [method for method, *_ in server.asked] == ["HEAD", "GET", "GET", "GET"]


def test_files_that_are_correct_already_are_not_fetched_again(study: Study, server: FileServer) -> None:
    on_server(server)
    fetch_release(study, "v1")
    stamps = {path: (FOLDER / path).stat().st_mtime_ns for path in FILES}
    (FOLDER / "data/steps.json").write_text("changed")
    fetch_release(study, "v1")
    assert [path for path, _ in server.gets[3:]] == ["/data/steps.json"]
    assert (FOLDER / "data/steps.json").read_bytes() == FILES["data/steps.json"]
    assert {p for p in FILES if (FOLDER / p).stat().st_mtime_ns != stamps[p]} == {"data/steps.json"}


def test_an_absent_file_is_one_line(study: Study, mirror: Path, server: FileServer) -> None:
    on_server(server)
    (mirror / "v1" / "steps.json").unlink()
    del server.files["/data/steps.json"]
    line = refused(study)
    assert line.startswith(f"demo/v1/data/steps.json is required: {server.url}/data/steps.json: HTTP 404; the mirror ")
    assert line.endswith(f"does not hold it (sha256 {sha256(FILES['data/steps.json'])})")
    assert (FOLDER / "data/annotation.json").exists()  # nothing is lost


def test_a_truncated_file_in_the_mirror_is_one_line(study: Study, mirror: Path) -> None:
    whole = FILES["data/steps.json"]
    (mirror / "v1" / "steps.json").write_bytes(whole[:100])
    assert f"the mirror's v1/steps.json has 100 of {len(whole)} bytes: replace it" in refused(study)


def test_a_changed_file_in_the_mirror_is_one_line(study: Study, mirror: Path) -> None:
    whole = FILES["data/steps.json"]
    (mirror / "v1" / "steps.json").write_bytes(whole.replace(b"2", b"3"))
    line = refused(study)
    assert line.startswith("demo/v1/data/steps.json is required: ")
    assert line.endswith("the mirror's v1/steps.json has another checksum: replace it")


def test_another_file_on_the_server_is_one_line_with_both_digests(study: Study, server: FileServer) -> None:
    changed = FILES["data/steps.json"].replace(b"2", b"3")
    on_server(server, steps=changed)
    line = refused(study)
    assert line.startswith("demo/v1/data/steps.json is required: ")
    assert f"wrong checksum: sha256 is {sha256(changed)}, expected {sha256(FILES['data/steps.json'])}" in line
    assert not (FOLDER / "data/steps.json").exists()


def test_without_mirror_and_network_the_line_says_both_ways(study: Study, server: FileServer) -> None:
    server.shutdown()
    server.server_close()
    line = refused(study)
    assert "is unreachable" in line
    assert line.endswith("; set STEPLINE_MIRROR to a folder that holds it, or repeat when the network is there")


def test_what_only_a_mirror_can_hold_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="^demo/release/annotation.json is required, .*STEPLINE_MIRROR is unset"):
        fetch_release(STUDIES["demo"], "demo")
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path))
    with pytest.raises(ReleaseError, match=f"is required, and the mirror {tmp_path} does not hold it"):
        fetch_release(STUDIES["demo"], "demo")


# Videos


def videos(study: Study, server: FileServer) -> Study:
    """Three videos: the mirror may hold one, the server one, nobody one."""
    listed = tuple(
        Video(id=name, split="test", duration_s=10.0, url=url, path=f"demo/videos/{name}.mp4")
        for name, url in (("held", ""), ("served", f"{server.url}/served.mp4"), ("lost", ""))
    )
    return replace(study, videos=lambda: listed)


def test_every_video_of_a_shard_has_a_record(study: Study, server: FileServer, mirror: Path) -> None:
    (mirror / "demo/videos").mkdir(parents=True)
    (mirror / "demo/videos/held.mp4").write_bytes(b"held")
    fetch_videos(videos(study, server), "000", validate({}))
    records = read_availability("datasets/demo/availability/000.json")
    assert {name: (record.status, record.attempts) for name, record in records.items()} == {
        "held": ("present", 0),
        "lost": ("missing", 0),
        "served": ("gone", 1),
    }
    assert all(record.reason for record in records.values() if record.status != "present")
    assert shards.read("datasets/demo/shards.csv") == dict.fromkeys(("held", "served", "lost"), "000")

    server.files["/served.mp4"] = b"served"
    fetch_videos(videos(study, server), "000", validate({}))
    records = read_availability("datasets/demo/availability/000.json")
    assert (records["served"].status, records["served"].attempts) == ("present", 2)
    assert Path("datasets/demo/videos/served.mp4").read_bytes() == b"served"


def test_strict_refuses_absent_videos_after_recording_them(study: Study, server: FileServer) -> None:
    with pytest.raises(
        MissingError, match="^3 of 3 videos are absent; held: not in the mirror at demo/videos/held.mp4$"
    ):
        fetch_videos(videos(study, server), "000", validate({"strict": True}))
    assert len(read_availability("datasets/demo/availability/000.json")) == 3


def test_attempts_are_counted_where_the_workflow_removes_the_shards_record(study: Study, server: FileServer) -> None:
    three = videos(study, server)
    server.next["/served.mp4"] = [401, 403, 401]
    manifest = Path("datasets/demo/availability/000.json")
    for attempts, status, strict in ((1, 401, False), (2, 403, True), (3, 401, False)):
        with nullcontext() if not strict else pytest.raises(MissingError):
            fetch_videos(three, "000", validate({"strict": strict}))
        record = read_availability(manifest)["served"]
        assert (record.status, record.attempts) == ("failed", attempts)
        assert record.reason == f"{server.url}/served.mp4: HTTP {status}"
        manifest.unlink()
        assert read_availability("datasets/demo/videos/served.json") == {"served": record}


def test_what_was_done_before_the_end_is_kept(study: Study, server: FileServer) -> None:
    served = Video(id="served", split="test", duration_s=1.0, url=f"{server.url}/served.mp4", path="served.mp4")
    broken = replace(served, id="../../x")
    with pytest.raises(ReleaseError):
        fetch_videos(replace(study, videos=lambda: (served, broken)), "000", validate({}))
    fetch_videos(replace(study, videos=lambda: (served,)), "000", validate({}))
    assert read_availability("datasets/demo/availability/000.json")["served"].attempts == 2


def test_only_the_shards_own_videos_are_fetched(study: Study, server: FileServer) -> None:
    two = videos(study, server)
    fetch_videos(two, "001", validate({"shard_hours": 20 / 3600}))
    assert set(read_availability("datasets/demo/availability/001.json")) == {"lost"}
    assert server.asked == []


# Weights


def test_weights_in_the_mirror_are_not_downloaded(mirror: Path, tmp_path: Path) -> None:
    (mirror / "weights/egovlp").mkdir(parents=True)
    (mirror / "weights/egovlp/EgoVLP_PT_BEST.pth").write_bytes(b"x")
    fetch_weights("egovlp")
    assert not (tmp_path / "weights").exists()


def test_weights_that_nobody_offers_are_one_line_with_a_command() -> None:
    with pytest.raises(MissingError) as error:
        fetch_weights("egovlp")
    assert "https://github.com/showlab/EgoVLP" in str(error.value)
    assert "cp EgoVLP_PT_BEST.pth weights/egovlp/" in str(error.value)


def test_weights_are_downloaded_where_they_can_be(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = fetch.WEIGHTS["mpnet"]
    urls = tuple(f"{server.url}/{name}" for name in weights.files)
    monkeypatch.setitem(fetch.WEIGHTS, "mpnet", replace(weights, urls=urls))
    server.files = {f"/{name}": name.encode() for name in weights.files}
    fetch_weights("mpnet")
    fetch_weights("mpnet")
    folder = Path("weights/mpnet")
    assert {name: (folder / name).read_bytes() for name in weights.files} == {
        name: name.encode() for name in weights.files
    }
    assert len(server.gets) == 3
    assert read_json(folder / "sha256.json") == {name: sha256(name.encode()) for name in weights.files}
    assert len(list(folder.iterdir())) == 4

    (folder / "tokenizer.json").unlink()
    server.files["/tokenizer.json"] = b"another one"
    with pytest.raises(DownloadError, match="tokenizer.json: wrong checksum"):
        fetch_weights("mpnet")
    assert not (folder / "tokenizer.json").exists()


@pytest.mark.parametrize("name", ["", "EgoVLP", "../x"])
def test_unknown_weights_are_one_line(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^weights '{name}' are not known; choose from mpnet, egovlp"):
        fetch_weights(name)


def test_the_manifest_is_the_same_for_the_same_files(study: Study, mirror: Path) -> None:
    first = fetch_release(study, "v1").read_bytes()
    assert fetch_release(study, "v1").read_bytes() == first
    assert json.loads(first)["files"].keys() == FILES.keys()

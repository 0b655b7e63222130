import hashlib
import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest

from stepline import fetch
from stepline.availability import read_availability, write_availability
from stepline.backbones.weights import WEIGHTS, File, Weights, locate
from stepline.benchmarks.spacewalk.benchmark import Spacewalk
from stepline.config import validate
from stepline.datasets import shards
from stepline.datasets.release import ReleaseFile
from stepline.datasets.schema import Video
from stepline.datasets.studies import STUDIES, Study
from stepline.errors import DownloadError, MissingError, ReleaseError, StoreError
from stepline.fetch import drop_videos, fetch_release, fetch_videos, fetch_weights
from stepline.io import read_json, write_json
from stepline.mirror import Wanted
from stepline.pipeline import Pipeline
from stepline.plans import configured, to_fetch
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
    first = manifest.read_bytes()
    assert fetch_release(study, "v1").read_bytes() == first


def test_a_release_comes_from_the_network_where_the_mirror_lacks_it_and_once(study: Study, server: FileServer) -> None:
    on_server(server)
    fetch_release(study, "v1")
    assert {path: (FOLDER / path).read_bytes() for path in FILES} == FILES
    assert [method for method, *_ in server.asked] == ["HEAD", "GET", "GET", "GET"]
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
    assert line.endswith(f"does not contain it (sha256 {sha256(FILES['data/steps.json'])})")
    assert (FOLDER / "data/annotation.json").exists()  # nothing is lost


def test_a_truncated_or_changed_file_in_the_mirror_is_one_line(study: Study, mirror: Path) -> None:
    whole = FILES["data/steps.json"]
    for content, what in (
        (whole[:100], f"100 of {len(whole)} bytes"),
        (whole.replace(b"2", b"3"), "another sha256"),
    ):
        (mirror / "v1" / "steps.json").write_bytes(content)
        line = refused(study)
        assert line.startswith("demo/v1/data/steps.json is required: ")
        assert line.endswith(f"the mirror's v1/steps.json has {what}: replace it")


def test_a_file_of_unknown_size_elsewhere_in_the_mirror_has_its_place_named(study: Study, mirror: Path) -> None:
    wanted = Wanted(path="demo/v1/data/steps.json")
    lacking = replace(
        study, release_files=lambda _: (ReleaseFile(path="data/steps.json", wanted=wanted, url="http://127.0.0.1:9/x"),)
    )
    line = refused(lacking)
    assert line.endswith("; the mirror has it as v1/steps.json: move it to demo/v1/data/steps.json")


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
    assert line.endswith("; set STEPLINE_MIRROR to a folder that contains it, or repeat when the network is available")


def test_a_file_without_an_address_that_is_another_in_the_mirror_is_one_line(study: Study, mirror: Path) -> None:
    """At its path, it is not mistaken for one of that name in a folder of another study."""
    wanted = Wanted(path="demo/steps.json", sha256=sha256(b"1"), size=1)
    lacking = replace(study, release_files=lambda _: (ReleaseFile(path="steps.json", wanted=wanted),))
    assert refused(lacking).startswith(f"demo/steps.json is required; the mirror {mirror} does not contain it (sha256 ")
    (mirror / "demo").mkdir()
    for content, what in ((b"22", "2 of 1 bytes"), (b"2", "another sha256")):
        (mirror / "demo/steps.json").write_bytes(content)
        assert refused(lacking) == f"demo/steps.json is required; the mirror's demo/steps.json has {what}: replace it"


def test_what_only_a_mirror_can_hold_is_one_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(
        ReleaseError,
        match=r"^demo/release/annotation.json is required; set STEPLINE_MIRROR to a folder that contains it$",
    ):
        fetch_release(STUDIES["demo"], "demo")
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path))
    with pytest.raises(ReleaseError, match=f"is required; the mirror {tmp_path} does not contain it"):
        fetch_release(STUDIES["demo"], "demo")


# Videos


def videos(study: Study, server: FileServer) -> Study:
    """Three videos: the mirror may hold one, the server one, nobody one."""
    listed = tuple(
        Video(id=name, split="test", duration_s=3.0, url=url, path=f"demo/videos/{name}.mp4")
        for name, url in (("held", ""), ("served", f"{server.url}/served.mp4"), ("lost", ""))
    )
    return replace(study, videos=lambda: listed)


def planned(study: Study, **config: object) -> Pipeline:
    plan = Spacewalk(validate({"demo": {}} | config), "demo")
    plan.__dict__["released"] = study
    return plan.pipeline


@pytest.fixture
def clip(tmp_path: Path) -> bytes:
    """Three frames."""
    pytest.importorskip("av")
    from tests.media.clips import make

    return make(tmp_path / "clip.mp4", [Fraction(i) for i in range(3)]).read_bytes()


def test_every_video_of_a_shard_has_a_record(study: Study, server: FileServer, mirror: Path, clip: bytes) -> None:
    (mirror / "demo/videos").mkdir(parents=True)
    (mirror / "demo/videos/held.mp4").write_bytes(clip)
    fetch_videos(planned(videos(study, server)), "000")
    records = read_availability("datasets/demo/availability/000.json")
    assert {name: (record.status, record.attempts) for name, record in records.items()} == {
        "held": ("present", 0),
        "lost": ("missing", 0),
        "served": ("gone", 1),
    }
    assert all(record.reason for record in records.values() if record.status != "present")
    assert shards.read("datasets/demo/shards.csv") == dict.fromkeys(("held", "served", "lost"), "000")

    server.files["/served.mp4"] = clip
    fetch_videos(planned(videos(study, server)), "000")
    records = read_availability("datasets/demo/availability/000.json")
    assert (records["served"].status, records["served"].attempts) == ("present", 2)
    assert Path("datasets/demo/videos/served.mp4").read_bytes() == clip


def test_attempts_are_counted_also_where_absent_videos_are_refused_and_the_workflow_removes_the_shards_record(
    study: Study, server: FileServer
) -> None:
    three = videos(study, server)
    server.next["/served.mp4"] = [401, 403, 401]
    manifest = Path("datasets/demo/availability/000.json")
    for attempts, status, strict in ((1, 401, False), (2, 403, True), (3, 401, False)):
        absent = "^3 of 3 videos are absent; held: not in the mirror at demo/videos/held.mp4$"
        with nullcontext() if not strict else pytest.raises(MissingError, match=absent):
            fetch_videos(planned(three, strict=strict), "000")
        assert len(read_availability(manifest)) == 3
        record = read_availability(manifest)["served"]
        assert (record.status, record.attempts) == ("failed", attempts)
        assert record.reason == f"{server.url}/served.mp4: HTTP {status}"
        manifest.unlink()
        assert read_availability("datasets/demo/videos/served.json") == {"served": record}


def test_what_was_done_before_the_end_is_kept(study: Study, server: FileServer) -> None:
    served = Video(id="served", split="test", duration_s=1.0, url=f"{server.url}/served.mp4", path="served.mp4")
    broken = replace(served, id="../../x")
    with pytest.raises(ReleaseError):
        fetch_videos(planned(replace(study, videos=lambda: (served, broken))), "000")
    fetch_videos(planned(replace(study, videos=lambda: (served,))), "000")
    assert read_availability("datasets/demo/availability/000.json")["served"].attempts == 2


def test_only_the_shards_own_videos_are_fetched(study: Study, server: FileServer) -> None:
    two = videos(study, server)
    fetch_videos(planned(two, shard_hours=7 / 3600), "001")
    assert set(read_availability("datasets/demo/availability/001.json")) == {"lost"}
    assert server.asked == []


def own(folder: Path, **config: object) -> Pipeline:
    """The plan of a folder with one clip."""
    return Pipeline.of(validate({"datasets": {"mine": {"videos": str(folder), "backbones": []}}} | config), "mine")


@pytest.fixture
def folder(tmp_path: Path, clip: bytes) -> Path:
    """A folder with a video."""
    (tmp_path / "videos").mkdir()
    (tmp_path / "videos/a.mp4").write_bytes(clip)
    return tmp_path / "videos"


def test_a_file_that_is_taken_away_is_forgotten_and_keeps_its_shard(folder: Path, clip: bytes) -> None:
    (folder / "b.mp4").write_bytes(clip)
    fetch_videos(own(folder), "000")
    (folder / "b.mp4").rename(folder / "b.kept")
    (present,) = fetch_videos(own(folder), "000")
    assert (present.video, present.status) == ("a", "present")
    assert set(read_availability("datasets/mine/availability/000.json")) == {"a"}
    assert Path("datasets/mine/shards.csv").read_text() == "video,shard\na,000\nb,000\n"


def computed(pipeline: Pipeline) -> None:
    for path in pipeline.drop_inputs("000"):
        write_json(path, {})


def test_a_deleted_video_is_asked_for_again_only_where_something_needs_it(
    tmp_path: Path, server: FileServer, clip: bytes
) -> None:
    (tmp_path / "list.csv").write_text(f"video,url\na,{server.url}/a.mp4\n")
    server.files["/a.mp4"] = clip
    datasets = {"mine": {"kind": "list", "videos": "list.csv", "backbones": []}}

    def made(**media: object) -> Pipeline:
        return Pipeline.of(validate({"datasets": datasets, "media": {"keep": "none"} | media}), "mine")

    fetch_videos(made(), "000")
    params = made().videos.params("000")
    with pytest.raises(MissingError, match="^datasets/mine/media/manifests/000.json must first be computed"):
        drop_videos(made(), "000")
    computed(made())
    drop_videos(made(), "000")
    assert not Path("datasets/mine/videos/a.mp4").exists()
    assert made().videos.params("000") == params
    (record,) = fetch_videos(made(), "000")
    assert (record.status, record.kept) == ("present", False)
    assert len(server.gets) == 1

    other = made(limits={"memory_mb": 4000})
    wanted = other.videos.params("000")
    assert wanted != params
    (record,) = fetch_videos(other, "000")
    assert record.kept
    assert Path(record.path).read_bytes() == clip
    assert len(server.gets) == 2
    assert made(limits={"memory_mb": 4000}).videos.params("000") == wanted

    drop_videos(other, "000")
    del server.files["/a.mp4"]
    (record,) = fetch_videos(made(), "000")
    assert (record.status, record.kept, record.sha256) == ("present", False, sha256(clip))
    assert record.reason.startswith(f"deleted after use, and cannot be fetched again: {server.url}/a.mp4: HTTP 404")


def test_what_a_fetch_by_hand_brings_is_noticed_by_the_next_run_and_only_by_that(
    tmp_path: Path, server: FileServer, clip: bytes
) -> None:
    (tmp_path / "list.csv").write_text(f"video,url\na,{server.url}/a.mp4\n")
    config = validate({"datasets": {"mine": {"kind": "list", "videos": "list.csv"}}})
    job = Path("datasets/mine/availability/000.json")
    from tests.media.clips import make

    def made() -> Pipeline:
        return Pipeline.of(config, "mine")

    assert fetch.videos_line(made()).startswith(f"0 of 1 videos\n  a: gone: {server.url}/a.mp4: HTTP 404")
    first = made().videos.params("000")
    assert fetch_videos(made(), "000")[0].status == "gone"
    assert fetch.videos_line(made()).startswith("0 of 1 videos")
    assert made().videos.params("000") == first
    server.files["/a.mp4"] = clip
    assert fetch.videos_line(made()) == "1 of 1 videos"
    wanted = made().videos.params("000")
    assert wanted != first
    job.unlink()
    assert fetch_videos(made(), "000")[0].status == "present"
    assert made().videos.params("000") == wanted
    assert fetch.videos_line(made()) == "1 of 1 videos"
    assert made().videos.params("000") == wanted
    make(Path("datasets/mine/videos/a.mp4"), [Fraction(i) for i in range(4)])
    assert fetch.videos_line(made()) == "1 of 1 videos"
    assert made().videos.params("000") != wanted


def test_a_kill_while_videos_are_deleted_has_nothing_fetched_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch_videos(own(folder), "000")
    computed(own(folder))
    params = own(folder).videos.params("000")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    for step in ("unlink", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(Path, step, killed)
            with pytest.raises(KeyboardInterrupt):
                drop_videos(own(folder), "000")
        assert own(folder).videos.params("000") == params
    drop_videos(own(folder), "000")
    assert not os.path.lexists("datasets/mine/videos/a.mp4")


def test_only_files_in_the_folder_of_videos_are_deleted_and_of_a_users_own_file_the_link(
    folder: Path, clip: bytes
) -> None:
    fetch_videos(own(folder), "000")
    link, memory = Path("datasets/mine/videos/a.mp4"), Path("datasets/mine/videos/a.json")
    assert link.is_symlink()
    computed(own(folder))
    (record,) = read_availability(memory).values()
    write_availability(memory, [replace(record, path=str(folder / "a.mp4"))])
    drop_videos(own(folder), "000")
    assert (folder / "a.mp4").exists()
    write_availability(memory, [record])
    drop_videos(own(folder), "000")
    assert not os.path.lexists(link)
    assert (folder / "a.mp4").read_bytes() == clip
    (folder / "a.mp4").write_bytes(b"another")
    (record,) = fetch_videos(own(folder), "000")
    assert (record.status, record.duration_s) == ("failed", 0)


def test_all_that_is_configured_is_listed_to_be_fetched(folder: Path) -> None:
    config = validate({"datasets": {"mine": {"videos": str(folder)}}, "spacewalk": {"text_encoders": ["mpnet"]}})
    listed = fetch.items(*to_fetch(config, configured(config)))
    weights = {f"weights/{name}" for name in ("mpnet", "egovlp", "videoclip", "internvideo", "s3d")}
    assert set(listed) == {"spacewalk/v0", "spacewalk/v1", "spacewalk/v2", "spacewalk/videos", "mine/videos"} | weights
    assert listed["mine/videos"]() == "1 of 1 videos"
    command = "install -D -t weights/egovlp EgoVLP_PT_BEST.pth && stepline fetch weights/egovlp"
    assert listed["weights/egovlp"]() == f"needs `{command}`"
    heard = validate({"demo": {"transcripts": "asr"}, "asr": {"engine": "whisper"}})
    assert {"demo/videos", "weights/whisper/small.en"} <= fetch.items(*to_fetch(heard, ["demo"])).keys()


# Weights


def offered(server: FileServer, name: str, monkeypatch: pytest.MonkeyPatch, **pins: str) -> Weights:
    """Let the server offer the files of weights that have an address; each holds its own name, and ``pins`` are set."""
    weights = WEIGHTS[name]
    files = tuple(replace(file, url=file.url and f"{server.url}/{file.name}", **pins) for file in weights.files)
    monkeypatch.setitem(WEIGHTS, name, replace(weights, files=files))
    server.files = {f"/{file.name}": file.name.encode() for file in files}
    return WEIGHTS[name]


def test_weights_in_the_mirror_are_not_downloaded_and_those_that_nobody_offers_are_one_line_with_a_command(
    mirror: Path, tmp_path: Path
) -> None:
    (mirror / "weights/timesformer").mkdir(parents=True)
    (mirror / "weights/timesformer" / WEIGHTS["timesformer"].files[0].name).write_bytes(b"x")
    fetch_weights("timesformer")
    assert not (tmp_path / "weights").exists()
    with pytest.raises(MissingError) as error:
        fetch_weights("egovlp")
    assert "https://drive.google.com/file/d/1-cP3Gcg0NGDcMZalgJ_615BQdbFIbcj7/view in a browser" in str(error.value)
    assert "`install -D -t weights/egovlp EgoVLP_PT_BEST.pth && stepline fetch weights/egovlp`" in str(error.value)


@pytest.mark.parametrize("place", ["weights/egovlp", "mirror"])
def test_what_was_got_by_hand_is_completed(
    place: str, mirror: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered(server, "egovlp", monkeypatch)
    folder = mirror / "weights/egovlp" if place == "mirror" else Path(place)
    folder.mkdir(parents=True)
    (folder / "EgoVLP_PT_BEST.pth").write_bytes(b"by hand")
    fetch_weights("egovlp")
    assert [path for path, _ in server.gets] == ["/tokenizer.json"]
    assert Path("weights/egovlp/EgoVLP_PT_BEST.pth").read_bytes() == b"by hand"
    assert read_json("weights/egovlp/sha256.json") == {
        "EgoVLP_PT_BEST.pth": sha256(b"by hand"),
        "tokenizer.json": sha256(b"tokenizer.json"),
    }


def test_weights_are_downloaded_where_they_can_be(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = offered(server, "mpnet", monkeypatch)
    fetch_weights("mpnet")
    fetch_weights("mpnet")
    folder = Path("weights/mpnet")
    names = [file.name for file in weights.files]
    assert {name: (folder / name).read_bytes() for name in names} == {name: name.encode() for name in names}
    assert len(server.gets) == 3
    assert read_json(folder / "sha256.json") == {name: sha256(name.encode()) for name in names}
    assert len(list(folder.iterdir())) == 4

    (folder / "tokenizer.json").unlink()
    server.files["/tokenizer.json"] = b"another one"
    with pytest.raises(DownloadError, match="tokenizer.json: wrong checksum"):
        fetch_weights("mpnet")
    assert not (folder / "tokenizer.json").exists()


def test_files_that_a_repository_lacks_have_others_in_their_place(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = (
        File(name="settings.json", url=f"{server.url}/settings.json", optional=True),
        File(name="model.bin", url=f"{server.url}/model.bin", instead="model.bin.index.json"),
    )
    monkeypatch.setitem(WEIGHTS, "mpnet", replace(WEIGHTS["mpnet"], files=files))
    index = {"weight_map": {"a": "model-1.bin", "b": "model-2.bin", "c": "model-1.bin"}}
    server.files = {"/model.bin.index.json": json.dumps(index).encode(), "/model-1.bin": b"1"}
    with pytest.raises(DownloadError, match=r"model-2.bin: HTTP 404; or get it from"):
        fetch_weights("mpnet")
    assert locate("mpnet") is None
    server.files["/model-2.bin"] = b"2"
    fetch_weights("mpnet")
    names = ["model.bin.index.json", "model-1.bin", "model-2.bin"]
    assert locate("mpnet") == {name: Path("weights/mpnet", name) for name in names}
    assert [path for path, _ in server.gets].count("/model-1.bin") == 1
    assert read_json("weights/mpnet/sha256.json").keys() == {*names}
    Path("weights/mpnet/model-2.bin").write_bytes(b"another")
    with pytest.raises(StoreError, match=r"model-2.bin is not the file that was downloaded"):
        locate("mpnet")


def test_a_dead_address_is_one_line_that_says_what_to_do_instead(
    server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered(server, "s3d", monkeypatch)
    server.files = {}
    line = "HTTP 404; or get it from a link in https://github.com/antoine77340/S3D_HowTo100M/issues/14, then `(.*)`$"
    with pytest.raises(DownloadError, match=line) as caught:
        fetch_weights("s3d")
    command = re.search(line, str(caught.value))
    assert command is not None
    for file in WEIGHTS["s3d"].files:
        Path(file.name).write_bytes(b"from a friend")
    subprocess.run(command[1], shell=True, check=True)
    fetch_weights("s3d")
    assert locate("s3d") is not None


def test_pinned_weights_are_what_was_published(server: FileServer, monkeypatch: pytest.MonkeyPatch) -> None:
    offered(server, "eva_clip", monkeypatch, size=17, sha256=sha256(b"eva_clip_psz14.pt"))
    server.files["/eva_clip_psz14.pt"] = b"of the same size."
    with pytest.raises(
        DownloadError, match=r"wrong checksum: sha256 is .*; or get it from https://github.com/baaivision"
    ):
        fetch_weights("eva_clip")
    assert not Path("weights/eva_clip/eva_clip_psz14.pt").exists()
    server.files["/eva_clip_psz14.pt"] = b"eva_clip_psz14.pt"
    fetch_weights("eva_clip")
    assert Path("weights/eva_clip/eva_clip_psz14.pt").read_bytes() == b"eva_clip_psz14.pt"


def test_pinned_weights_are_linked_from_anywhere_in_the_mirror(
    mirror: Path, server: FileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered(server, "eva_clip", monkeypatch, size=17, sha256=sha256(b"eva_clip_psz14.pt"))
    (mirror / "elsewhere").mkdir()
    (mirror / "elsewhere/another.pt").write_bytes(b"eva_clip_psz14.pt")
    fetch_weights("eva_clip")
    assert Path("weights/eva_clip/eva_clip_psz14.pt").resolve() == (mirror / "elsewhere/another.pt").resolve()
    assert server.gets == []

"""What has videos fetched again and deleted, one change at a time."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.availability import HEADERS, Record, write_availability, write_manifest
from stepline.config import Config, validate
from stepline.datasets.schema import Video
from stepline.io import write_json, write_text
from stepline.pipeline import media_params, shots_params, videos
from stepline.plans import pipeline
from tests.pipeline.own import made


def test_a_file_that_comes_changes_or_goes_is_looked_for_again(clips: Path) -> None:
    seen = [made().videos.params("000")]
    (clips / "c.mp4").write_bytes(b"x")
    seen.append(made().videos.params("000"))
    (clips / "c.mp4").write_bytes(b"xy")
    seen.append(made().videos.params("000"))
    write_text(paths.shards("mine"), "video,shard\na,000\nb,000\nc,000\n")
    assert made().videos.params("000") == seen[-1]
    (clips / "c.mp4").unlink()
    assert made().videos.params("000") == seen[0]
    assert len(set(seen)) == 3


def test_videos_are_here_where_one_is_given_in_the_mirror_fetched_or_deleted_after_use(
    clips: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def are_here(*listed: Video, **media: str) -> bool:
        own = made(media=media)
        return replace(own, dataset=replace(own.dataset, videos=lambda: listed)).videos.are_here

    given, unknown = (Video(id=name, file=str(clips / f"{name}.mp4")) for name in "az")
    assert are_here(unknown, given)
    assert not are_here(unknown)
    absent = Video(id="c", url="https://example.org/c.mp4", path="mine/videos/c.mp4")
    assert not are_here(absent)
    write_text(tmp_path / "mirror/mine/videos/c.mp4", "x")
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path / "mirror"))
    assert are_here(absent)
    monkeypatch.delenv("STEPLINE_MIRROR")
    for name in ("c.json", ".c.mp4.part"):
        write_text(paths.videos("mine") / name, "x")
    assert not are_here(absent)
    write_text(paths.dropped("mine", "000"), "{}")
    assert not are_here(absent)
    assert are_here(absent, keep="none")
    write_text(paths.videos("mine") / "c.mp4", "x")
    assert are_here(absent)


def test_a_file_that_may_be_read_by_now_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    readable = made().videos.params("000")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "a.mp4")
    assert made().videos.params("000") != readable


def came(file: Path) -> str:
    """Record what a shard's job would after it brought a video, and return the job's parameter."""
    stamps = made().videos.stamps("000")
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    found = Record(video=file.stem, status="present", path=str(file), sha256=sha256, stamp=stamps[file.stem])
    write_availability(paths.videos("mine") / f"{file.stem}.json", [found])
    return made().videos.params("000")


def test_a_file_with_the_same_bytes_at_another_time_is_the_same(clips: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = clips / "b.mp4"
    file.write_bytes(b"12345")
    first = made().videos.params("000")
    assert came(file) == first
    for at in (1, 2):
        os.utime(file, ns=(at, at))
        assert made().videos.params("000") == first
    assert came(file) == first
    file.write_bytes(b"12346")
    other = made().videos.params("000")
    assert other != first
    assert came(file) == other
    file.write_bytes(b"12345")
    os.utime(file, ns=(3, 3))
    assert made().videos.params("000") not in (first, other)
    came(file)
    hashed: list[Path] = []
    monkeypatch.setattr(videos, "cached_sha256", hashed.append)
    made().videos.params("000")
    assert hashed == []
    file.write_bytes(b"123456")
    made().videos.params("000")
    assert hashed == []
    file.write_bytes(b"54321")
    made().videos.params("000")
    assert hashed == [file.absolute()]


def test_a_record_of_an_earlier_version_has_the_same_parameter(clips: Path) -> None:
    before = made().videos.params("000")
    write_availability(
        paths.videos("mine") / "a.json", [Record(video="a", status="present", path=str(clips / "a.mp4"))]
    )
    assert made().videos.params("000") == before


def test_only_the_shard_of_a_change_is_concerned(clips: Path) -> None:
    before = [made(shard_hours=1e-10).videos.params(shard) for shard in ("000", "001")]
    (clips / "b.mp4").write_bytes(b"xyz")
    after = [made(shard_hours=1e-10).videos.params(shard) for shard in ("000", "001")]
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)


def test_a_video_with_another_checksum_in_the_list_is_looked_for_again() -> None:
    seen = set()
    for sha256 in ("a" * 64, "b" * 64):
        Path("list.csv").write_text(f"video,url,sha256\na,http://127.0.0.1/a.mp4,{sha256}\n")
        seen.add(made(datasets={"mine": {"kind": "list", "videos": "list.csv"}}).videos.params("000"))
    assert len(seen) == 2


def test_what_snakemake_shows_of_a_shard_holds_no_password() -> None:
    seen = []
    for password in ("one", "two"):
        Path("list.csv").write_text(f"video,url\na,http://me:{password}@127.0.0.1/a.mp4\n")
        seen.append(made(datasets={"mine": {"kind": "list", "videos": "list.csv"}}).videos.params("000"))
        assert password not in seen[-1]
    assert seen[0] != seen[1]


def record(video: str, *, kept: bool = True) -> None:
    found = Record(video=video, status="present", path=f"datasets/mine/videos/{video}.mp4", kept=kept)
    write_availability(paths.videos("mine") / f"{video}.json", [found])


def test_a_lost_video_counts_once_and_so_does_its_fetch() -> None:
    assert made().videos.again("000") == 0
    record("a")
    assert made().videos.again("000") == 1
    Path("datasets/mine/videos/a.mp4").touch()
    write_json(paths.fetches("mine", "000"), {"again": 1})
    assert made().videos.again("000") == 1
    Path("datasets/mine/videos/a.mp4").unlink()
    assert made().videos.again("000") == 2


def test_lost_videos_and_strictness_have_a_shard_looked_for_again() -> None:
    before = made().videos.params("000")
    assert made(strict=True).videos.params("000") != before
    record("a")
    assert made().videos.params("000") != before


def test_a_deleted_video_is_wanted_where_something_is_to_be_computed() -> None:
    record("a", kept=False)
    assert made().videos.needed("000")
    assert made().videos.again("000") == 1
    for path in made().drop_inputs("000"):
        write_json(path, {})
    write_manifest(paths.dropped("mine", "000"), {}, by=media_params(made().config))
    assert not made().videos.needed("000")
    assert made().videos.again("000") == 0
    assert made(media={"limits": {"memory_mb": 9000}}).videos.again("000") == 1
    assert made(media={"reader": "decord"}).videos.again("000") == 1
    without = {"mine": {"videos": "clips", "backbones": []}}
    assert made(media={"reader": "decord"}, datasets=without).videos.again("000") == 0
    assert made(shots={"threshold": 3}, asr={"engine": "deepgram"}).videos.again("000") == 0


def test_what_is_not_kept_is_dropped_before_the_table() -> None:
    assert made().videos.dropped == []
    assert made(media={"keep": "none"}).videos.dropped == [paths.dropped("mine", "000")]
    assert paths.dropped("mine", "000") in made(media={"keep": "none"}).summary_inputs()
    study = validate({"media": {"keep": "none"}, "spacewalk": {"text_encoders": ["tfidf"]}})
    assert pipeline(study, "spacewalk").videos.dropped == []


def test_a_disk_is_filled_by_what_is_downloaded_and_made() -> None:
    Path("list.csv").write_text("video,url,duration_s\na,http://127.0.0.1/a.mp4,36000\n")
    listed = made(datasets={"mine": {"kind": "list", "videos": "list.csv"}})
    assert [listed.videos.disk_mb(stage, "000") for stage in ("videos", "media", "extract")] == [14_400, 1_440, 720]
    assert made().videos.disk_mb("videos", "000") == 0


def test_only_annotated_spans_are_read_where_that_is_configured() -> None:
    Path("segments.csv").write_text("video,start_s,end_s,label\na,0,2,x\na,1,4,y\n")
    given = {"datasets": {"mine": {"videos": "clips", "segments": "segments.csv"}}}
    assert made(**given).videos.spans() == {}
    assert made(**given).videos.params("000") == made().videos.params("000")
    annotated = made(**given, media={"spans": "annotated"}).videos
    assert annotated.spans() == {"a": [[0, 4]]}
    assert annotated.params("000") != made(**given).videos.params("000")


@pytest.mark.parametrize(("params", "revision"), [(media_params, "REVISION"), (shots_params, "SHOTS_REVISION")])
def test_another_revision_is_another_parameter_of_the_job(
    params: Callable[[Config], str], revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = params(validate({}))
    monkeypatch.setattr(videos, revision, 99)
    assert params(validate({})) != before


def test_how_damaged_and_rotated_videos_are_read_is_a_parameter_only_where_it_is_not_the_default() -> None:
    before = media_params(validate({}))
    assert "damaged" not in before
    assert "orientation" not in before
    for changed in ({"damaged": "skip"}, {"orientation": "stored"}):
        other = json.loads(media_params(validate({"media": changed})))
        assert other == json.loads(before) | changed
    assert media_params(validate({"media": {"damaged": "partial", "orientation": "upright"}})) == before


def test_a_file_of_which_an_earlier_version_read_another_stream_is_fetched_again(clips: Path) -> None:
    pytest.importorskip("av")
    from tests.media.test_decode import flags, two_streams

    def fetched(headers: int, **more: Any) -> str:
        """Record the two videos, and return the job's parameter."""
        for video in ("a", "b"):
            about = {"path": str(clips / f"{video}.mp4"), "stamp": made().videos.stamps("000")[video]}
            found = Record(video=video, status="present", sha256="0", headers=headers, **about, **more)
            write_availability(paths.videos("mine") / f"{video}.json", [found])
        return made().videos.params("000")

    for name in ("a", "b"):
        two_streams(clips / f"{name}.mp4", "-y", *flags(True, False))
    first = made().videos.params("000")
    assert fetched(HEADERS - 1) == first
    two_streams(clips / "b.mp4", "-y", *flags(False, True))
    before = fetched(HEADERS)
    again = fetched(HEADERS - 1)
    assert (again, made().videos.again("000")) != (before, 0)
    write_json(paths.fetches("mine", "000"), {"again": made().videos.again("000")})
    assert fetched(HEADERS) == again


def test_a_file_of_which_an_earlier_version_downloaded_only_spans_is_fetched_again(clips: Path) -> None:
    pytest.importorskip("av")
    from tests.download.clip import cut
    from tests.media.clips import CFR_25, make

    videos = made().videos
    whole = make(clips / "a.mp4", CFR_25)
    about = {"path": str(whole), "stamp": videos.stamps("000")["a"], "headers": HEADERS, "spans": [[0.0, 1.0]]}
    write_availability(paths.videos("mine") / "a.json", [Record(video="a", status="present", **about)])
    assert videos.again("000") == 0
    cut(whole, clips / "cut.mp4")
    os.replace(clips / "cut.mp4", whole)
    assert made().videos.again("000") == 1

"""What decides the jobs of a data set's videos, one change at a time."""

import os
from pathlib import Path
from typing import Any

import pytest

from stepline import paths
from stepline.asr import engines
from stepline.availability import Record, write_availability, write_manifest
from stepline.config import validate
from stepline.errors import ConfigError, MissingError
from stepline.io import write_json, write_text
from stepline.pipeline import Pipeline, how_to_fill
from stepline.plans import configured, plan


@pytest.fixture(autouse=True)
def clips() -> Path:
    """A folder with two videos."""
    Path("clips").mkdir()
    for name in "ab":
        Path(f"clips/{name}.mp4").write_bytes(b"x")
    return Path("clips")


def made(**changes: Any) -> Pipeline:
    return Pipeline.of(validate({"datasets": {"mine": {"videos": "clips"}}} | changes), "mine")


def test_a_file_that_comes_changes_or_goes_is_looked_for_again(clips: Path) -> None:
    seen = [made().video_params("000")]
    (clips / "c.mp4").write_bytes(b"x")
    seen.append(made().video_params("000"))
    (clips / "c.mp4").write_bytes(b"xy")
    seen.append(made().video_params("000"))
    write_text(paths.shards("mine"), "video,shard\na,000\nb,000\nc,000\n")
    assert made().video_params("000") == seen[-1]
    (clips / "c.mp4").unlink()
    seen.append(made().video_params("000"))
    assert len(set(seen)) == 4


def test_a_file_that_may_be_read_by_now_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    readable = made().video_params("000")
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "a.mp4")
    assert made().video_params("000") != readable


def test_only_the_shard_of_a_change_is_concerned(clips: Path) -> None:
    before = [made(shard_hours=1e-10).video_params(shard) for shard in ("000", "001")]
    (clips / "b.mp4").write_bytes(b"xyz")
    after = [made(shard_hours=1e-10).video_params(shard) for shard in ("000", "001")]
    assert (before[0] == after[0], before[1] == after[1]) == (True, False)


def test_what_snakemake_shows_of_a_shard_holds_no_password() -> None:
    seen = []
    for password in ("one", "two"):
        Path("list.csv").write_text(f"video,url\na,http://me:{password}@127.0.0.1/a.mp4\n")
        seen.append(made(datasets={"mine": {"kind": "list", "videos": "list.csv"}}).video_params("000"))
        assert password not in seen[-1]
    assert seen[0] != seen[1]


def record(video: str, *, kept: bool = True) -> None:
    found = Record(video=video, status="present", path=f"datasets/mine/videos/{video}.mp4", kept=kept)
    write_availability(paths.videos("mine") / f"{video}.json", [found])


def test_a_lost_video_counts_once_and_so_does_its_fetch() -> None:
    assert made().again("000") == 0
    record("a")
    assert made().again("000") == 1
    Path("datasets/mine/videos/a.mp4").touch()
    write_json(paths.fetches("mine", "000"), {"again": 1})
    assert made().again("000") == 1
    Path("datasets/mine/videos/a.mp4").unlink()
    assert made().again("000") == 2


def test_lost_videos_and_strictness_have_a_shard_looked_for_again() -> None:
    before = made().video_params("000")
    assert made(strict=True).video_params("000") != before
    record("a")
    assert made().video_params("000") != before


def test_the_table_counts_what_all_stages_made() -> None:
    folders = [getattr(paths, stage)("mine") for stage in ("media", "shots")] + [
        paths.transcripts("mine", "pocketsphinx")
    ]
    wanted = [paths.manifest(folder, "000") for folder in folders]
    wanted += [paths.availability("mine", "000"), paths.features_manifest("mine", "000", made().spec_of("histogram"))]
    assert sorted(made().summary_inputs()) == sorted(wanted)


def test_a_transcript_that_failed_is_asked_for_again() -> None:
    before = made().transcribe_params("000")
    folder = paths.transcripts("mine", "pocketsphinx")
    write_json(folder / "a.json", {"failures": 1})
    assert made().transcribe_params("000") != before
    said = {video: {"status": "present", "reason": "", "n_sentences": 0} for video in "ab"}
    write_manifest(paths.manifest(folder, "000"), said, **made().recogniser)
    assert made().transcribed
    said["a"] = {"status": "failed", "reason": "HTTP 503", "failures": 1}
    write_manifest(paths.manifest(folder, "000"), said, **made().recogniser)
    assert not made().transcribed


def test_a_deleted_video_is_wanted_where_something_is_to_be_computed() -> None:
    record("a", kept=False)
    assert made().needs_videos("000")
    assert made().again("000") == 1
    for path in made().made_from_videos("000"):
        write_json(path, {})
    write_manifest(paths.dropped("mine", "000"), {}, by=made().media_params())
    assert not made().needs_videos("000")
    assert made().again("000") == 0
    assert made(media={"limits": {"memory_mb": 9000}}).again("000") == 1
    assert made(media={"reader": "decord"}).again("000") == 1
    without = {"mine": {"videos": "clips", "backbones": []}}
    assert made(media={"reader": "decord"}, datasets=without).again("000") == 0
    assert made(shots={"threshold": 3}, asr={"engine": "deepgram"}).again("000") == 0


def test_what_is_not_kept_is_dropped_before_the_table() -> None:
    assert made().dropped == []
    assert made(media={"keep": "none"}).dropped == [paths.dropped("mine", "000")]
    assert paths.dropped("mine", "000") in made(media={"keep": "none"}).summary_inputs()
    study = validate({"media": {"keep": "none"}, "spacewalk": {"text_encoders": ["tfidf"]}})
    assert plan(study, "spacewalk").dropped == []


def test_keeping_videos_or_not_decides_no_number() -> None:
    one, other = made(), made(media={"keep": "none"})
    assert all(
        getattr(one, by)(*of) == getattr(other, by)(*of)
        for by, of in (("media_params", ()), ("extract_params", ("histogram", "000")))
    )


def test_a_disk_is_filled_by_what_is_downloaded_and_made() -> None:
    Path("list.csv").write_text("video,url,duration_s\na,http://127.0.0.1/a.mp4,36000\n")
    listed = made(datasets={"mine": {"kind": "list", "videos": "list.csv"}})
    assert [listed.disk_gb(stage, "000") for stage in ("videos", "media", "extract")] == [15, 2, 1]
    assert made().disk_gb("videos", "000") == 0


def test_what_the_recogniser_lacks_is_asked_where_transcripts_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    deepgram = {"engine": "deepgram"}
    assert made(asr=deepgram).recogniser_lacks == ("key:DEEPGRAM_API_KEY",)
    assert not any("transcripts" in str(path) for path in made(asr=deepgram).summary_inputs())
    other = deepgram | {"deepgram": {"model": "nova-2"}}
    assert made(asr=deepgram).summary_params() != made(asr=other).summary_params()
    with pytest.raises(MissingError, match=r"^strict: mine lacks key:DEEPGRAM_API_KEY$"):
        made(asr=deepgram, strict=True)
    said = {video: {"status": "present", "reason": "", "n_sentences": 0} for video in "ab"}
    manifest = paths.manifest(paths.transcripts("mine", "deepgram"), "000")
    write_manifest(manifest, said, **made(asr=deepgram).recogniser)
    assert made(asr=deepgram).recogniser_lacks == ()
    write_manifest(manifest, {"a": said["a"]}, **made(asr=deepgram).recogniser)
    assert made(asr=deepgram).recogniser_lacks == ("key:DEEPGRAM_API_KEY",)
    monkeypatch.setattr(engines, "find_spec", lambda name: None)
    assert made().recogniser_lacks == ("package:pocketsphinx",)


def test_every_need_has_its_command() -> None:
    assert {
        item: how_to_fill(item) for item in ("weights:mpnet", "weights:whisper/tiny", "key:X", "stepline:newer")
    } == {
        "weights:mpnet": "stepline fetch weights/mpnet",
        "weights:whisper/tiny": "stepline fetch weights/whisper/tiny",
        "key:X": "export X=...",
        "stepline:newer": "",
    }


def test_the_configured_data_sets_have_plans() -> None:
    config = validate({"datasets": {"mine": {"videos": "clips"}}, "demo": {}})
    assert configured(config) == ["demo", "mine"]
    assert [plan(config, name).targets[0] for name in configured(config)] == ["table2.csv", "videos.csv"]
    with pytest.raises(ConfigError, match="dataset 'x' is not known"):
        plan(config, "x")

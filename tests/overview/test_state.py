"""States of jobs and of videos, from records, logs and locks."""

import fcntl
from pathlib import Path

import pytest

from stepline import cli
from stepline.availability import Record, write_availability, write_manifest
from stepline.io import write_json, write_text
from stepline.overview.graph import Graph
from stepline.overview.records import to_do
from stepline.overview.state import Became, State, states, videos
from stepline.pipeline import media_params
from tests.overview.listed import config

LOG = "logs/media/mine.001.log"


def state(rule: str, shard: str) -> State:
    graph = Graph(config())
    found = states(graph, to_do(graph))
    return next(state for job, state in found.items() if job.rule == rule and getattr(job.by, "shard", "") == shard)


def came(shard: str, record: Record) -> None:
    write_availability(f"datasets/mine/availability/{shard}.json", [record])
    write_availability(f"datasets/mine/videos/{record.video}.json", [record])


def test_nothing_runs_and_nothing_is_done_in_an_empty_folder() -> None:
    graph = Graph(config())
    assert {state.word for state in states(graph, to_do(graph)).values()} == {"waiting"}
    assert state("media", "001").reason == "datasets/mine/media/manifests/001.json is not there yet"


def test_a_job_runs_while_it_holds_its_log() -> None:
    write_text(LOG, "")
    with open(LOG) as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        assert state("media", "001") == State("running")
        write_json(
            ".stepline/progress/media/mine.001.json",
            {"what": "media", "unit": "s of video", "done": 612.5, "total": 1740},
        )
        assert state("media", "001") == State("running", "media: 612 of 1740 s of video")
        assert state("media", "000").word == "waiting"
    assert state("media", "001").word == "waiting"


def test_the_command_line_holds_the_log_of_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[State] = []
    config()
    monkeypatch.setattr("stepline.cli._prepare", lambda _: seen.append(state("media", "001")))
    cli.main(["--log", LOG, "--configfile", "listed.yaml", "media", "mine", "--shard", "001"])
    assert seen == [State("running")]
    cli.main(["--configfile", "listed.yaml", "media", "mine", "--shard", "000"])
    assert state("media", "001").word == "failed"


def test_a_job_failed_whose_log_ends_with_an_error() -> None:
    line = "2026-11-25 15:17:12,378 ERROR error: the disk is full: free some space"
    write_text(LOG, f"2026-11-25 15:17:11,100 INFO media\n{line}\n")
    assert state("media", "001") == State("failed", "the disk is full: free some space")
    write_text(LOG, "2026-11-25 15:17:12,378 ERROR error: ended by SIGTERM: finished videos are kept\n")
    assert state("media", "001") == State("waiting", "ended by SIGTERM: finished videos are kept")


def test_a_job_is_done_whose_record_has_the_videos_that_are_listed_now() -> None:
    present = {"status": "present", "reason": "", "revision": 2, "audio": {"status": "missing", "reason": "no sound"}}
    came("001", Record(video="b", status="gone", reason="removed"))
    write_manifest("datasets/mine/media/manifests/001.json", {"b": {"status": "gone", "reason": "removed"}})
    assert state("videos", "001") == state("media", "001") == State("done")
    write_manifest("datasets/mine/media/manifests/001.json", {"other": present | {"status": "failed"}})
    assert state("media", "001") == State("waiting", "other videos are listed")
    write_manifest("datasets/mine/media/manifests/001.json", {"b": {"status": "failed", "reason": "", "revision": 1}})
    assert state("media", "001") == State("waiting", "sound and scores were made by another revision")


def test_what_comes_after_a_job_that_is_not_done_is_not_done_either() -> None:
    write_manifest("datasets/mine/media/manifests/001.json", {"b": {"status": "gone", "reason": "removed"}})
    assert state("media", "001") == State("waiting", "after videos mine 001")


def test_a_record_whose_file_is_gone_makes_its_job_wait() -> None:
    came("001", Record(video="b", status="gone", reason="removed"))
    assert state("videos", "001").word == "done"
    Path("datasets/mine/videos/b.json").unlink()
    assert state("videos", "001") == State("waiting", "datasets/mine/videos/b.json is gone")
    assert Path("datasets/mine/availability/001.json").exists()  # only a run removes it


def test_videos_that_were_deleted_after_use_are_not_lost() -> None:
    alone = {"stages": ["features"], "backbones": ["histogram"]}
    changed = config(mine=alone, media={"keep": "none"})
    record = Record(video="b", status="present", path="datasets/mine/videos/b.mp4", kept=False)
    came("001", record)
    pipeline = Graph(changed).helpers.pipelines["mine"]
    (features,) = pipeline.made_from_videos("001")
    write_manifest(features, {"b": {"status": "present", "reason": "", "n_rows": 0}})
    write_manifest("datasets/mine/dropped/001.json", {}, by=media_params(changed))
    for file in ("index.parquet", "features/zarr.json"):
        write_text(features.parents[1] / "mine/001" / file, "")
    write_text(features.parents[1] / "spec.json", "{}")

    def left() -> set[str]:
        graph = Graph(changed)
        return {job.rule for job in to_do(graph) if getattr(job.by, "shard", "") == "001"}

    assert left() == set()
    features.unlink()
    assert left() == {"videos", "extract", "drop"}


def test_videos_say_what_became_of_them() -> None:
    pipeline = Graph(config()).helpers.pipelines["mine"]
    assert set(videos(pipeline).values()) == {Became("waiting")}
    path = "datasets/mine/videos/a.mp4"
    came("000", Record(video="a", status="failed", reason=f"{path}: no video", path=path))
    for shard, video in (("001", "b"), ("002", "c")):
        write_text(f"datasets/mine/videos/{video}.mp4", "")
        came(shard, Record(video=video, status="present", path=f"datasets/mine/videos/{video}.mp4"))
    made = {"status": "present", "reason": "", "gaps": [[3.0, 5.0, "no picture"]]}
    write_manifest("datasets/mine/media/manifests/001.json", {"b": made})
    write_manifest("datasets/mine/media/manifests/002.json", {"c": made | {"gaps": []}})
    speech = {"c": {"status": "failed", "reason": "HTTP 500", "failures": 1}}
    write_manifest("datasets/mine/transcripts/pocketsphinx/manifests/002.json", speech)
    assert videos(pipeline) == {
        "a": Became("failed", "no video"),
        "b": Became("partial", "3.000 to 5.000 s: no picture"),
        "c": Became("present", "transcript: HTTP 500"),
    }

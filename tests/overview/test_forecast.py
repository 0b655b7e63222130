"""Hours and disk of what is left, by records and rates."""

import fcntl
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stepline import rates
from stepline.availability import Record, write_availability
from stepline.backbones.weights import WEIGHTS
from stepline.config import validate
from stepline.io import write_json, write_text
from stepline.overview import lengths as module
from stepline.overview.forecast import Disk, Estimate, Forecast, Videos, Work
from stepline.overview.graph import Graph
from stepline.overview.records import to_do
from tests.overview.listed import config

FEATURES = {"stages": ["features"], "backbones": ["histogram"]}


def forecast(**changes: Any) -> Forecast:
    graph = Graph(config(**changes))
    return Forecast(graph, to_do(graph))


def here(shard: str, video: str) -> None:
    path = f"datasets/mine/videos/{video}.mp4"
    write_text(path, "x")
    record = Record(video=video, status="present", path=path, size=360_000_000, downloader="yt-dlp", duration_s=1800.0)
    for file in (f"availability/{shard}", f"videos/{video}"):
        write_availability(f"datasets/mine/{file}.json", [record])


def test_decoding_counts_once_for_all_that_is_made_of_a_video() -> None:
    decoding, speech = forecast(mine={"backbones": ["histogram"]}).work
    assert decoding == Work("decoding, with sound and scores", 3.0, Estimate(pytest.approx(0.3), "typical"))  # type: ignore[arg-type]
    assert speech.what == "speech of mine, by pocketsphinx"
    assert speech.cpu == Estimate(pytest.approx(1.25), "at most")  # type: ignore[arg-type]
    assert speech.gpu is None


def test_features_alone_are_decoded_at_their_own_rate() -> None:
    (decoding,) = forecast(mine=FEATURES).work
    assert decoding == Work("decoding for features", 3.0, Estimate(pytest.approx(0.48), "typical"))  # type: ignore[arg-type]


def test_what_this_machine_took_is_what_it_will_take() -> None:
    rates.note("decode", video_s=600, spent_s=60)
    rates.note("speech.pocketsphinx.cpu", video_s=600, spent_s=300)
    rates.note("media", video_s=600, spent_s=120)
    assert forecast(mine=FEATURES).total[0] == Estimate(pytest.approx(0.3), "measured")  # type: ignore[arg-type]
    assert forecast().total[0] == Estimate(pytest.approx(3 * (0.2 + 0.5)), "measured")  # type: ignore[arg-type]


def test_a_job_that_runs_says_how_much_is_left() -> None:
    rates.note("decode", video_s=600, spent_s=60)
    job = next(job for job in forecast(mine=FEATURES).jobs if job.rule == "extract")
    write_text(job.log, "")
    said = {"what": "features", "unit": "s of video", "done": 900, "total": 3600}
    write_json(Path(".stepline/progress", *Path(job.log).parts[1:]).with_suffix(".json"), said)
    assert forecast(mine=FEATURES).stage_hours("extract") == pytest.approx(0.3)
    with open(job.log) as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        assert forecast(mine=FEATURES).stage_hours("extract") == pytest.approx(0.275)


def test_a_network_has_hours_on_either_device() -> None:
    for file in WEIGHTS["s3d"].files:
        write_text(f"weights/s3d/{file.name}", "x")
    made = forecast(mine={"stages": ["features"], "backbones": ["s3d-pss", "histogram"]})
    network = made.work[1]
    assert (network.what, network.video_hours) == ("s3d-pss", 3.0)
    assert network.cpu == Estimate(pytest.approx(3 * 16 * 0.029), "typical")  # type: ignore[arg-type]
    assert network.gpu == Estimate(pytest.approx(0.75), "at most")  # type: ignore[arg-type]
    assert made.total[1] == network.gpu
    rates.note("network.s3d-pss.cuda", video_s=3600, spent_s=90)
    made = forecast(mine={"stages": ["features"], "backbones": ["s3d-pss", "histogram"]})
    assert made.total[1] == Estimate(pytest.approx(0.075), "measured")  # type: ignore[arg-type]


def test_downloads_are_sized_by_those_that_came() -> None:
    folder = "datasets/mine/videos"
    assert forecast(mine=FEATURES).disk[0] == Disk(folder, 3 * 3600 * 400_000)
    here("000", "a")
    made = forecast(mine=FEATURES)
    assert made.videos == [Videos("mine", 3, 2.5, 0)]
    shards = [job.by.shard for job in made.jobs if job.rule == "videos"]
    assert shards == ["001", "002"]
    assert made.disk[0] == Disk(folder, 2 * 3600 * 400_000)  # none of these shards has a record yet


def test_of_videos_that_are_not_kept_one_shard_is_there_at_a_time() -> None:
    made = forecast(mine=FEATURES, media={"keep": "none"})
    assert made.disk[0].bytes == 3600 * 400_000
    assert made.peak_bytes == sum(each.bytes or 0 for each in made.disk)


def test_disk_is_what_two_hours_took() -> None:
    made = {each.folder: each.bytes or 0 for each in forecast(mine={"backbones": ["histogram"]}).disk}
    features = sum(n for folder, n in made.items() if folder.startswith("features"))
    computed = sum(made.values()) - features - made["datasets/mine/videos"]
    assert computed * 2 / 3 == pytest.approx(230e6, rel=0.1)  # the list has three hours
    assert features * 2 / 3 == pytest.approx(114e6, rel=0.1)


def test_features_take_their_rows() -> None:
    made = {each.folder.split("/")[1]: each for each in forecast(mine=FEATURES).disk}
    assert made["histogram"].bytes == 3 * 3600 * 5 * 822 * 4
    far = {each.folder.split("/")[1]: each for each in forecast(mine=FEATURES, features={"store": "s3://bucket"}).disk}
    assert not far["histogram"].here


def test_lengths_of_files_follow_from_the_headers_of_some(monkeypatch: pytest.MonkeyPatch) -> None:
    class Headers:
        def __init__(self, _: object) -> None:
            self.asked = 0

        def __enter__(self) -> "Headers":
            return self

        def __exit__(self, *_: object) -> None:
            assert self.asked == 2

        def __call__(self, path: Path) -> Any:
            self.asked += 1
            return SimpleNamespace(duration_s=path.stat().st_size / 10)

    monkeypatch.setattr(module, "Headers", Headers)
    monkeypatch.setattr(module, "READ", 2)
    for number in range(4):
        write_text(f"clips/{number}.mp4", "x" * 100 * (number + 1))
    pipeline = Graph(validate({"datasets": {"mine": {"videos": "clips"}}})).helpers.pipelines["mine"]
    found = module.lengths(pipeline, ["000"])
    assert found.seconds == {"0": 10.0, "1": 20.0, "2": 30.0, "3": 40.0}
    assert found.guessed == {"1", "3"}


def test_a_rate_of_little_video_is_kept_only_where_there_is_none() -> None:
    rates.note("media", video_s=2, spent_s=4)
    rates.note("media", video_s=0, spent_s=4)
    assert rates.measured("media") == 2
    rates.note("media", video_s=2, spent_s=2)
    assert rates.measured("media") == 2
    rates.note("media", video_s=100, spent_s=10)
    assert rates.measured("media") == pytest.approx(0.1)
    assert rates.measured("decode") is None

"""A shard of HT-Step's 20,635 videos, and a table of the few of them that are there."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from stepline import open_bank, paths
from stepline.availability import Record, read_availability, write_availability
from stepline.config import validate
from stepline.datasets import htstep
from stepline.features.extract import extract
from stepline.features.work import works
from stepline.fetch import fetch_release
from stepline.io import write_json
from stepline.media.process import Limits
from stepline.pipeline import Pipeline
from stepline.plans import pipeline
from tests.conftest import made_once
from tests.datasets.htstep_made import make_annotations
from tests.workflow.runs import by_entry, network, run

pytestmark = pytest.mark.slow
SHARD = "145"
"""It has the last training videos and the first of val_seen."""
TRAIN, VAL = 2, 2
DURATION_S = 4
BASELINES = "duration", "place", "uniform"
CONFIG: dict[str, Any] = {
    "backbones": {"colours": {"path": "colours.py"}},
    "htstep": {
        "features": {"s3d": ["colours"]},
        "tables": ["table2"],
        "entries": {entry: {"splits": ["val_seen"]} for entry in BASELINES}
        | {"actionformer": {"features": "timesformer"}},
        "metrics": {"bootstrap_samples": 100},
    },
}
"""Features without weights. ActionFormer, which needs no texts either, waits for TimeSformer's weights."""
TABLE = "results/htstep/table2.csv"
JOBS = [f"colours on htstep, shard {SHARD}", f"videos of htstep, shard {SHARD}"]


def planned() -> Pipeline:
    return pipeline(validate(CONFIG), "htstep")


def work(folder: Path, *targets: str) -> list[str]:
    (folder / "htstep.json").write_text(json.dumps(CONFIG))
    options = "--configfile", "htstep.json", "--", *targets
    return run(*options, folder=folder, mirror=folder / "mirror", HTTPS_PROXY="http://127.0.0.1:9")


def members(shard: str, split: str) -> list[str]:
    return [video.id for video in planned().videos.members(shard) if video.split == split]


def chosen() -> list[str]:
    return members(SHARD, "train")[-TRAIN:] + members(SHARD, "val")[:VAL]


def add(mirror: Path, *videos: str) -> None:
    """Put a clip of noise into the mirror for each of these videos, none like another."""
    clip = pytest.importorskip("tests.download.clip")
    for number, video in enumerate(videos):
        path = mirror / "htstep/videos" / f"{video}.mp4"
        path.parent.mkdir(parents=True, exist_ok=True)
        noise = f"testsrc2=size=64x48:rate=5:duration={DURATION_S},noise=alls=40:all_seed={number}"
        clip.ffmpeg("-f", "lavfi", "-i", noise, "-c:v", "libx264", "-pix_fmt", "yuv420p", path)


def manifest() -> str:
    made = planned()
    return str(paths.features_manifest("htstep", SHARD, made.features.spec_of("colours")))


@pytest.fixture(scope="module")
def shard(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A work folder with a mirror of the release and a few of its videos, and the features of their shard."""
    pytest.importorskip("av")
    pytest.importorskip("torch")

    def compute(folder: Path) -> None:
        mirror = folder / "mirror"
        (mirror / "htstep").mkdir(parents=True)
        for file in htstep.FILES["v1"]:
            (mirror / "htstep" / file.path).symlink_to(real_data / "htstep" / file.path)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            patch.setenv("STEPLINE_MIRROR", str(mirror))
            Path("colours.py").write_text(network("colours"))
            add(mirror, *chosen())
            assert work(folder, manifest()) == JOBS

    return made_once(tmp_path_factory, "htstep-shard", compute)


@pytest.fixture
def here(shard: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of that folder, in which the test runs."""
    folder = Path(shutil.copytree(shard, tmp_path / "copy", symlinks=True))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("STEPLINE_MIRROR", str(folder / "mirror"))
    return folder


def test_a_shard_of_many_has_the_few_that_are_there(here: Path) -> None:
    assert len(planned().videos.shards) == 20635
    found = read_availability(paths.availability("htstep", SHARD))
    assert len(found) == 120
    assert {video for video, record in found.items() if record.status == "present"} == {*chosen()}
    assert {record.status for record in found.values()} == {"present", "failed"}
    assert "www.youtube.com is unreachable" in next(r.reason for r in found.values() if r.status == "failed")
    bank = open_bank("colours", "htstep")
    assert {*bank} == {*chosen()}
    assert all(len(bank[video]) == DURATION_S for video in bank)
    assert not paths.availability("htstep", "000").exists()
    assert work(here, manifest()) == []


def test_a_video_that_comes_runs_its_shard_alone(here: Path) -> None:
    another = members(SHARD, "val")[VAL]
    add(here / "mirror", another)
    assert work(here, manifest()) == JOBS
    assert another in open_bank("colours", "htstep")


def leave_others() -> None:
    """Write what the jobs of all other shards leave where none of their videos is there."""
    made = planned()
    for shard in made.videos.all_shards:
        if shard != SHARD:
            records = [Record(video=video.id, status="missing") for video in made.videos.members(shard)]
            write_availability(paths.availability("htstep", shard), records)
            todo = works(made, "colours", shard)
            target = paths.features_manifest("htstep", shard, todo[0].spec)
            lock, limits = paths.features_lock("htstep", shard), Limits(**made.config["media"]["limits"])
            options = made.config["features"]
            extract(paths.availability("htstep", shard), todo, target, lock=lock, limits=limits, options=options)


@pytest.mark.long
def test_baselines_of_those_that_are_there_stand_in_the_table(here: Path) -> None:
    fetch_release(htstep.RELEASES, "v1")
    annotations = make_annotations(0, ["train", "val_seen"], durations=dict.fromkeys(chosen(), DURATION_S))
    write_json(here / "mirror" / htstep.FILES["annotations"][0].wanted.path, annotations)
    leave_others()
    jobs = work(here, TABLE)
    assert [job for job in jobs if job.startswith(("videos", "colours"))] == []
    assert [job.split()[1] for job in jobs if job.startswith("predict ")] == [*BASELINES]
    found = by_entry(here, TABLE)
    for entry in BASELINES:
        row = found[entry, "val_seen_map"]
        assert 0 < float(row["value"]) < 100
        assert row["options"] == "annotation=made up;features=colours;splits=val_seen"
        assert row["note"] == f"videos: {VAL} of 600 evaluated; the annotation is made up: no result"
        assert found[entry, "test_seen_map"]["status"] == "needs"
        assert "submissions" not in found[entry, "test_seen_map"]["note"]

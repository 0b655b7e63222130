"""What a change of the list of videos concerns, and what plans remember of annotation."""

from pathlib import Path

import pytest

from stepline import paths
from stepline.config import validate
from stepline.datasets import htstep, htstep_files, shards
from stepline.datasets.htstep import ANNOTATIONS, RELEASES
from stepline.datasets.htstep_files import VIDEOS
from stepline.io import read_json, sha256_file, write_json
from stepline.pipeline import Pipeline
from stepline.plans import pipeline
from tests.benchmarks.htstep.conftest import plan


def planned() -> Pipeline:
    return pipeline(validate({"shard_hours": 1, "htstep": {}}), "htstep")


def change(release: str, path: str, content: object) -> None:
    """Write another file of a release, as if it had been fetched."""
    folder = RELEASES.folder(release)
    write_json(folder / path, content)
    fetched = read_json(folder / "release.json")
    fetched["files"][path] = sha256_file(folder / path)
    write_json(folder / "release.json", fetched)


def test_one_more_video_concerns_one_shard(releases: None) -> None:
    made = planned().videos
    assert len(made.all_shards) > 3
    before = {shard: made.params(shard) for shard in made.all_shards}
    shards.write(paths.shards("htstep"), made.shards)
    listed = read_json(RELEASES.folder("v1") / VIDEOS)
    change("v1", VIDEOS, listed | {"train": ["another", *listed["train"]]})
    after = planned().videos
    changed = {shard for shard in after.all_shards if after.params(shard) != before.get(shard)}
    assert changed == {after.shards["another"]}
    assert after.shards.items() >= made.shards.items()


def test_a_file_of_one_video_concerns_one_shard(
    releases: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPLINE_MIRROR", str(tmp_path))
    before = planned().videos
    found = {shard: before.params(shard) for shard in before.all_shards}
    assert before.disk_mb("videos", before.all_shards[1]) == 1440
    path = tmp_path / before.members(before.all_shards[1])[0].path
    path.parent.mkdir(parents=True)
    path.touch()
    assert before.params(before.all_shards[1]) == found[before.all_shards[1]], "a plan stays as it is"
    after = planned().videos
    assert [shard for shard in after.all_shards if after.params(shard) != found[shard]] == [after.all_shards[1]]


def test_an_annotation_is_read_once_for_all_plans(releases: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPLINE_RUN", "1")
    reads = []
    summary = htstep_files.summary
    monkeypatch.setattr(htstep_files, "summary", lambda file: reads.append(file) or summary(file))
    htstep._summary.cache_clear()
    assert plan().labelled == ("train", "val_seen")
    htstep._summary.cache_clear()
    assert (plan().labelled, plan().made_up) == (("train", "val_seen"), False)
    assert len(reads) == 1
    annotations = read_json(RELEASES.folder("annotations") / ANNOTATIONS)
    for record in annotations.values():
        record["made"] = True
    change("annotations", ANNOTATIONS, annotations)
    assert plan().made_up
    assert len(reads) == 2

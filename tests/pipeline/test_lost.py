"""Records whose files are gone or damaged are removed, and no others."""

import os
import re
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest

from stepline import aside, paths, remembered
from stepline.aside import PREFIX
from stepline.availability import Record, read_manifest, write_availability, write_manifest
from stepline.io import write_json, write_text
from stepline.pipeline.lost import forget_lost
from tests.asr.wav import write_wav
from tests.pipeline.own import made

AVAILABILITY, MEDIA, SHOTS, PICTURES = (
    "datasets/mine/availability/000.json",
    "datasets/mine/media/manifests/000.json",
    "datasets/mine/shots/manifests/000.json",
    "datasets/mine/thumbnails/manifests/000.json",
)
SPEECH = "datasets/mine/transcripts/pocketsphinx/manifests/000.json"
GIVEN = {"datasets": {"mine": {"videos": "clips", "backbones": ["histogram"]}}}


def lost() -> dict[str, str]:
    lines = [*forget_lost(made(**GIVEN), looks=False)]
    found = [re.fullmatch("(.+): the job of (.+) runs again", line) for line in lines]
    return {each[2]: each[1] for each in found if each}


@pytest.fixture
def features(monkeypatch: pytest.MonkeyPatch) -> str:
    """The record of features in a folder where all was made: ``a`` has sound, ``b`` none and one shot no picture."""
    monkeypatch.setattr(remembered, "SETTLED_S", -1.0)
    monkeypatch.setenv("STEPLINE_RUN", "1")
    pipeline = made(**GIVEN)
    spec = pipeline.features.spec_of("histogram")
    store, manifest = paths.features("mine", "000", spec), paths.features_manifest("mine", "000", spec)
    picture = "datasets/mine/thumbnails/a/0.jpg"
    sound = {"a": "present", "b": "missing"}
    for video in "ab":
        record = Record(video=video, status="present", path=f"datasets/mine/videos/{video}.mp4")
        write_availability(f"datasets/mine/videos/{video}.json", [record])
        for file in ("media.json", "scores.parquet", *(["audio.wav"] if sound[video] == "present" else [])):
            write_text(f"datasets/mine/media/{video}/{file}", "")
        for file in (f"shots/{video}.csv", f"shots/{video}.parquet"):
            write_text(f"datasets/mine/{file}", "")
    for file in ("a.json", "a.parquet"):
        write_text(f"datasets/mine/transcripts/pocketsphinx/{file}", "")
    for path in (picture, store / "index.parquet", store / "features/zarr.json", store / "features/c/0/0"):
        write_text(path, "")
    write_json(paths.spec_record(spec), spec.record())
    present = {"status": "present", "reason": ""}
    failed = {"status": "failed", "reason": "no video stream"}
    write_manifest(AVAILABILITY, {"a": present, "b": present})
    write_manifest(MEDIA, {video: {**present, "audio": {"status": sound[video], "loud_s": 1.0}} for video in "ab"})
    write_manifest(SHOTS, {"a": present, "b": present})
    write_manifest(SPEECH, {"a": present, "b": failed})
    write_manifest(PICTURES, {"a": {**present, "pictures": {"0": picture}}, "b": {**present, "pictures": {}}})
    write_manifest(manifest, {"a": {**present, "n_rows": 3}, "b": failed}, spec=spec.record())
    assert lost() == {}
    monkeypatch.setattr(aside, "_swept", set())
    return str(manifest)


def test_what_a_killed_process_left_beside_the_files_is_removed(features: str) -> None:
    folders = [Path("datasets/mine/thumbnails/a"), Path(features).parents[1] / "mine/000/features/c/0"]
    for folder in folders:
        (folder / f"{PREFIX}{aside._HOST[0]}-{'0' * 6}-1.jpg").write_text("half")
    assert lost() == {}
    assert not [path for folder in folders for path in folder.glob(f"{PREFIX}*")]


def test_a_record_that_may_not_be_removed_stops_a_run_but_nobody_who_looks(
    features: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("datasets/mine/shots/a.csv").unlink()

    def refuse(path: str) -> NoReturn:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "unlink", refuse)
    (line,) = forget_lost(made(**GIVEN), looks=True)
    assert line.startswith(f"datasets/mine/shots/a.csv no longer exists: a run removes {SHOTS} and runs its job again")
    with pytest.raises(PermissionError):
        [*forget_lost(made(**GIVEN), looks=False)]


@pytest.mark.parametrize(
    ("record", "file"),
    [
        (AVAILABILITY, "datasets/mine/videos/b.json"),
        (MEDIA, "datasets/mine/media/a/audio.wav"),
        (MEDIA, "datasets/mine/media/b/scores.parquet"),
        (MEDIA, "datasets/mine/media/b/media.json"),
        (SHOTS, "datasets/mine/shots/a.csv"),
        (SHOTS, "datasets/mine/shots/b.parquet"),
        (SPEECH, "datasets/mine/transcripts/pocketsphinx/a.parquet"),
        (SPEECH, "datasets/mine/transcripts/pocketsphinx/a.json"),
        (PICTURES, "datasets/mine/thumbnails/a/0.jpg"),
        ("features", "index.parquet"),
        ("features", "features/zarr.json"),
        ("features", "features/c/0/0"),
        ("features", "spec.json"),
    ],
)
def test_a_record_of_which_a_file_is_gone_is_removed_and_no_other(record: str, file: str, features: str) -> None:
    if record == "features":
        record, (found,) = features, Path("features").glob(f"**/{file}")
        file = str(found)
    Path(file).unlink()
    assert lost() == {record: f"{file} no longer exists"}
    assert not Path(record).exists()
    assert all(Path(each).exists() for each in {AVAILABILITY, MEDIA, SHOTS, SPEECH, PICTURES, features} - {record})
    assert lost() == {}


def test_a_record_of_media_is_removed_if_an_earlier_version_wrote_a_wrong_header(features: str) -> None:
    assert features
    wav = Path("datasets/mine/media/a/audio.wav")
    loud = (np.arange(32_000) % 40 * 500).astype(np.int16)
    write_manifest(MEDIA, {"a": {"status": "present", "reason": "", "audio": {"status": "present"}}})
    write_wav(wav, loud)
    assert lost() == {}
    with open(wav, "r+b") as file:
        file.seek(40)
        file.write((400).to_bytes(4, "little"))
    os.utime(wav.parent)
    assert lost() == {MEDIA: f"{wav} is damaged: its header states another length"}
    write_manifest(MEDIA, {"a": {"status": "present", "reason": "", "audio": {"status": "present"}}})
    write_wav(wav, loud // 1000)
    assert [*lost()] == [MEDIA]


def test_a_record_that_another_run_removes_meanwhile_is_no_error(
    features: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("media/a/scores.parquet", "shots/a.csv"):
        os.unlink(f"datasets/mine/{file}")
    lines = forget_lost(made(**GIVEN), looks=False)
    next(lines)
    other = next(path for path in (MEDIA, SHOTS) if os.path.exists(path))
    os.unlink(other)
    assert other in "".join(lines)

    def read(path: Path) -> dict[str, Any]:
        Path(PICTURES).unlink(missing_ok=True)
        return read_manifest(path)

    monkeypatch.setattr("stepline.pipeline.lost.read_manifest", read)
    os.unlink("datasets/mine/media/a/audio.wav")
    monkeypatch.setenv("STEPLINE_RUN", "2")
    assert PICTURES not in lost()
